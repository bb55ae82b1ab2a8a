"""The cores that a process may really use, from fake and from real systems."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from resilience_mw.signals import cores
from resilience_mw.signals.cores import effective_cores

V2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
V1 = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct"
NOISE = """\
24 1 8:1 / / rw - ext4 /dev/root rw
33 31 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids"""


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Build a /proc and a /sys under `tmp_path`, on a machine of 64 cores."""
    monkeypatch.setattr(cores, "_affinity", lambda: 64.0)

    def build(cgroup: str, mounts: str, files: dict[str, str]) -> Path:
        process = tmp_path / "proc/self"
        process.mkdir(parents=True)
        (process / "cgroup").write_text(cgroup)
        (process / "mountinfo").write_text(f"{NOISE}\n{mounts}\n")
        for name, content in files.items():
            path = tmp_path / "sys/fs/cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return Path(tmp_path)

    return build


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 64.0),
        ({"a/b/cpu.max": "max 100000\n"}, 64.0),
        ({"a/b/cpu.max": "200000 100000\n"}, 2.0),
        ({"a/b/cpu.max": "50000 100000\n"}, 0.5),
        ({"a/b/cpu.max": "150000 100000\n", "a/cpu.max": "max 100000"}, 1.5),
        ({"a/b/cpu.max": "400000 100000\n", "a/cpu.max": "250000 100000"}, 2.5),
        ({"a/b/cpu.max": "max 100000", "cpu.max": "300000 100000"}, 3.0),
        ({"a/c/cpu.max": "100000 100000"}, 64.0),
        ({"a/b/cpu.max": "9900000 100000"}, 64.0),
        ({"a/b/cpu.max": ""}, 64.0),
        ({"a/b/cpu.max": "garbage"}, 64.0),
        ({"a/b/cpu.max": "much 100000"}, 64.0),
        ({"a/b/cpu.max": "100000 0"}, 64.0),
        ({"a/b/cpu.max": "0 100000"}, 64.0),
        ({"a/b/cpu.max": "-1 100000"}, 64.0),
        ({"a/b/cpu.max": "1 2 3"}, 64.0),
    ],
)
def test_cgroup_v2(system, files, expected):
    """The least quota of the group and its parents, fractions included; siblings do not count."""
    assert effective_cores(system("0::/a/b\n", V2, files)) == expected


@pytest.mark.parametrize(
    ("quota", "period", "expected"),
    [
        ("250000", "100000", 2.5),
        ("-1", "100000", 64.0),
        ("0", "100000", 64.0),
        ("100000", "0", 64.0),
        ("100000", "", 64.0),
        ("x", "y", 64.0),
    ],
)
def test_cgroup_v1(system, quota, period, expected):
    """A quota of -1 is none."""
    root = system(
        "9:name=systemd:/\n2:cpu,cpuacct:/a\n1:pids:/a\n",
        V1,
        {"cpu,cpuacct/a/cpu.cfs_quota_us": quota, "cpu,cpuacct/a/cpu.cfs_period_us": period},
    )
    assert effective_cores(root) == expected


def test_cgroup_v1_parents_limit_too(system):
    """A pod's quota holds for its containers."""
    root = system(
        "2:cpu,cpuacct:/pod/container\n",
        V1,
        {
            "cpu,cpuacct/pod/container/cpu.cfs_quota_us": "400000",
            "cpu,cpuacct/pod/container/cpu.cfs_period_us": "100000",
            "cpu,cpuacct/pod/cpu.cfs_quota_us": "100000",
            "cpu,cpuacct/pod/cpu.cfs_period_us": "100000",
        },
    )
    assert effective_cores(root) == 1.0


def test_hybrid_systems_take_the_least(system):
    """v1 for the CPU beside an empty v2 tree, or both."""
    root = system(
        "2:cpu:/a\n0::/b\n",
        f"{V1}\n{V2.replace('/sys/fs/cgroup', '/sys/fs/cgroup/unified')}",
        {
            "cpu,cpuacct/a/cpu.cfs_quota_us": "300000",
            "cpu,cpuacct/a/cpu.cfs_period_us": "100000",
            "unified/b/cpu.max": "200000 100000",
        },
    )
    assert effective_cores(root) == 2.0


@pytest.mark.parametrize("path", ["/docker/c0ffee", "/docker/c0ffee/inner", "/", "/../../other"])
def test_containers_see_their_group_as_the_mounts_root(system, path):
    """With and without a namespace of its own, the mounted directory is the container's group."""
    mounted = "/docker/c0ffee" if path.startswith("/docker") else "/"
    root = system(
        f"0::{path}\n", V2.replace("0:28 /", f"0:28 {mounted}"), {"cpu.max": "150000 100000"}
    )
    assert effective_cores(root) == 1.5


def test_a_hierarchy_that_we_are_not_in(system):
    """A mount of a version that the process has no group in does not limit it."""
    root = system("1:pids:/a\n", f"{V1}\n{V2}", {"cpu.max": "100000 100000"})
    assert effective_cores(root) == 64.0


def test_a_mount_of_another_group(system):
    """A path that is not below what is mounted is looked up at the mount's root."""
    root = system("0::/other\n", V2.replace("0:28 /", "0:28 /docker"), {"cpu.max": "100000 100000"})
    assert effective_cores(root) == 1.0


def test_mount_points_with_spaces(system):
    """mountinfo writes a space as an octal escape."""
    mount = V2.replace("/sys/fs/cgroup", "/sys/fs/cgroup/my\\040groups")
    assert effective_cores(system("0::/\n", mount, {"my groups/cpu.max": "100000 100000"})) == 1.0


@pytest.mark.parametrize("lines", ["", "garbage", "a b c - cgroup2", "1 2 3 4 5 6 -", "\x00\xff"])
def test_garbage_does_not_limit(system, lines):
    """Whatever cannot be read leaves the affinity."""
    assert effective_cores(system(f"{lines}\n0::/\n", lines, {"cpu.max": "100000 100000"})) == 64.0


def test_no_control_groups_at_all(tmp_path, monkeypatch):
    """Neither /proc nor /sys: macOS, Windows."""
    monkeypatch.setattr(cores, "_affinity", lambda: 64.0)
    assert effective_cores(tmp_path) == 64.0
    assert effective_cores("/no/such\0root") == 64.0


def test_this_machine():
    """A positive number, no larger than the machine."""
    assert 0.0 < effective_cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="sets an affinity")
def test_affinity_counts(tmp_path):
    """A process pinned to one CPU has one core."""
    program = f"""
import os
os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})
from resilience_mw.signals.cores import effective_cores
print(effective_cores({str(tmp_path)!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "1.0", done.stderr


def test_systems_without_affinity(tmp_path, monkeypatch):
    """macOS: all cores of the machine."""
    monkeypatch.delattr(psutil.Process, "cpu_affinity")
    assert effective_cores(tmp_path) == float(os.cpu_count() or 1)

"""Memory is what the container may use, or what the machine has."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from resilience_mw.health import MemoryCheck
from resilience_mw.signals.memory import memory_used
from tests.health.checks.asking import PASSED, ask

MIB = 1024 * 1024


class Machine:
    """A tree of files as a kernel shows them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def file(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def v2(self, group: str = "/", mounted: str = "/") -> None:
        """Mount version 2 with ourselves in `group`."""
        self.file("proc/self/cgroup", f"0::{group}\n")
        self.file(
            "proc/self/mountinfo",
            f"30 20 0:26 {mounted} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        )

    def v1(self, group: str = "/", mounted: str = "/") -> None:
        """Mount version 1's memory hierarchy beside an empty version 2."""
        self.file("proc/self/cgroup", f"4:memory:{group}\n3:cpu:/other\n0::/\n")
        self.file(
            "proc/self/mountinfo",
            f"35 31 0:32 {mounted} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        )

    def group2(self, path: str, limit: int | str, current: int, inactive: int = 0) -> None:
        self.file(f"sys/fs/cgroup{path}/memory.max", f"{limit}\n")
        self.file(f"sys/fs/cgroup{path}/memory.current", f"{current}\n")
        self.file(f"sys/fs/cgroup{path}/memory.stat", f"anon 5\ninactive_file {inactive}\n")

    def group1(self, path: str, limit: int, usage: int, inactive: int = 0) -> None:
        base = f"sys/fs/cgroup/memory{path}"
        self.file(f"{base}/memory.limit_in_bytes", f"{limit}\n")
        self.file(f"{base}/memory.usage_in_bytes", f"{usage}\n")
        self.file(f"{base}/memory.stat", f"inactive_file 1\ntotal_inactive_file {inactive}\n")


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


def test_version_2_in_a_container(machine):
    """Its group is the root of the mount; pages that can be dropped do not count."""
    machine.v2()
    machine.group2("", 100 * MIB, 80 * MIB, inactive=30 * MIB)
    assert memory_used(machine.root) == pytest.approx(0.5)


def test_version_1_in_a_container(machine):
    """With the figures of the whole subtree."""
    machine.v1("/docker/abc", mounted="/docker/abc")
    machine.group1("", 100 * MIB, 80 * MIB, inactive=20 * MIB)
    assert memory_used(machine.root) == pytest.approx(0.6)


def test_a_parent_that_is_nearer_to_its_limit_counts(machine):
    """A slice of several services may fill up before the service does."""
    machine.v2("/system.slice/app.service")
    machine.group2("/system.slice/app.service", 100 * MIB, 10 * MIB)
    machine.group2("/system.slice", 200 * MIB, 180 * MIB)
    assert memory_used(machine.root) == pytest.approx(0.9)


def test_without_a_limit_it_is_the_machine(machine):
    """Version 2 says max, version 1 a huge number."""
    memory = psutil.virtual_memory()
    expected = pytest.approx(1 - memory.available / memory.total, abs=0.2)
    assert memory_used(machine.root) == expected
    machine.v2()
    machine.group2("", "max", 80 * MIB)
    assert memory_used(machine.root) == expected
    machine.v1()
    machine.group1("", 9223372036854771712, 80 * MIB)
    assert memory_used(machine.root) == expected


def test_a_hierarchy_that_we_are_not_in_limits_nothing(machine):
    """Mounted all the same."""
    machine.v1()
    machine.group1("", 100 * MIB, 100 * MIB)
    machine.file("proc/self/cgroup", "3:cpu:/other\n")
    memory = psutil.virtual_memory()
    assert memory_used(machine.root) == pytest.approx(1 - memory.available / memory.total, abs=0.2)


def test_more_inactive_than_used_is_nothing_used(machine):
    """The figures are not read at one moment."""
    machine.v2()
    machine.group2("", 100 * MIB, 10 * MIB, inactive=11 * MIB)
    assert memory_used(machine.root) == 0.0


@pytest.mark.parametrize("text", ["", "no lines of a kernel\n", "30 20 -\n", "\x00\xff - \n"])
def test_files_that_make_no_sense_limit_nothing(machine, text):
    """Nor do they raise."""
    machine.v2()
    machine.group2("", 100 * MIB, 100 * MIB)
    machine.file("proc/self/mountinfo", text)
    assert 0.0 <= memory_used(machine.root) <= 1.0
    machine.v2("/../..")
    machine.file("sys/fs/cgroup/memory.max", "many\n")
    assert 0.0 <= memory_used(machine.root) <= 1.0


def test_the_check_compares():
    """On the real machine, which uses some memory and not all."""
    assert ask(MemoryCheck(max_used=1)) == PASSED
    assert ask(MemoryCheck(max_used=1e-9)) == "full"

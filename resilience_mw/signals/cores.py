"""How many cores this process may really use: affinity and the quotas of its control groups.

`os.cpu_count()` and `psutil.cpu_count()` see neither; 3.13's
`os.process_cpu_count()` sees affinity.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import psutil


def effective_cores(root: str | os.PathLike[str] = "/") -> float:
    """Return the cores this process may use, possibly a fraction, always above 0.

    It is the smallest of the scheduling affinity and of the quotas of the process's control group
    and all its parents (`cpu.max` in v2, `cpu.cfs_quota_us` in v1; kernel documentation, cgroup-v2
    and sched-bwc). What cannot be read does not limit.

    Args:
        root: directory under which `proc` and the control-group mounts are looked up.
    """
    return min([_affinity(), *_quotas(Path(root))])


def _affinity() -> float:
    try:
        return float(len(psutil.Process().cpu_affinity() or ()) or 1)
    except (AttributeError, psutil.Error, OSError):
        # macOS has no affinity.
        return float(os.cpu_count() or 1)


def _quotas(root: Path) -> Iterator[float]:
    for directory, top, version in _groups(root):
        while True:
            quota = _quota_v2(directory) if version == 2 else _quota_v1(directory)
            if quota is not None and quota > 0.0:
                yield quota
            if directory == top:
                break
            directory = directory.parent


def _groups(root: Path) -> Iterator[tuple[Path, Path, int]]:
    """Yield (directory of our group, mount point, cgroup version) of each CPU hierarchy."""
    memberships = dict(_memberships(root))
    for mounted, mount_point, version in _mounts(root):
        path = memberships.get(version)
        if path is None:
            continue
        top = root / mount_point.lstrip("/")
        # A container sees its own group as the root of the mount, and nothing outside of it.
        inside = mounted == "/" or path == mounted or path.startswith(mounted + "/")
        below = path.removeprefix(mounted.rstrip("/")).strip("/") if inside else ""
        if ".." in below.split("/"):
            below = ""
        yield top / below, top, version


def _memberships(root: Path) -> Iterator[tuple[int, str]]:
    """Yield (version, path) for this process from `/proc/self/cgroup`."""
    for line in _lines(root / "proc/self/cgroup"):
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0" and not controllers:
            yield 2, path
        elif "cpu" in controllers.split(","):
            yield 1, path


def _mounts(root: Path) -> Iterator[tuple[str, str, int]]:
    """Yield (root of the mount, mount point, version) from `/proc/self/mountinfo`."""
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or not kind:
            continue
        if kind[0] == "cgroup2":
            yield _unescape(fields[3]), _unescape(fields[4]), 2
        elif kind[0] == "cgroup" and "cpu" in kind[-1].split(","):
            yield _unescape(fields[3]), _unescape(fields[4]), 1


def _unescape(path: str) -> str:
    """Undo mountinfo's octal escapes of space, tab, newline and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _quota_v2(group: Path) -> float | None:
    fields = " ".join(_lines(group / "cpu.max")).split()
    if len(fields) != 2 or fields[0] == "max":
        return None
    return _ratio(fields[0], fields[1])


def _quota_v1(group: Path) -> float | None:
    quota = " ".join(_lines(group / "cpu.cfs_quota_us"))
    period = " ".join(_lines(group / "cpu.cfs_period_us"))
    return _ratio(quota, period)


def _ratio(quota: str, period: str) -> float | None:
    try:
        return int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except (OSError, ValueError):
        return []

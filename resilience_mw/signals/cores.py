"""How many cores this process may really use: affinity and the quotas of its control groups.

`os.cpu_count()` and `psutil.cpu_count()` see neither; 3.13's
`os.process_cpu_count()` sees affinity.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

from .cgroups import levels, lines


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
    for directory, version in levels(root, "cpu"):
        quota = _quota_v2(directory) if version == 2 else _quota_v1(directory)
        if quota is not None and quota > 0.0:
            yield quota


def _quota_v2(group: Path) -> float | None:
    fields = " ".join(lines(group / "cpu.max")).split()
    if len(fields) != 2 or fields[0] == "max":
        return None
    return _ratio(fields[0], fields[1])


def _quota_v1(group: Path) -> float | None:
    quota = " ".join(lines(group / "cpu.cfs_quota_us"))
    period = " ".join(lines(group / "cpu.cfs_period_us"))
    return _ratio(quota, period)


def _ratio(quota: str, period: str) -> float | None:
    try:
        return int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None

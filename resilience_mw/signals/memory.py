"""How much of the memory that this process may use is used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

from .cgroups import levels, lines


def memory_used(root: str | os.PathLike[str] = "/") -> float:
    """Return the used share of the memory there is for us, between 0 and about 1.

    Of the control groups with a limit that we are in, the one nearest to it counts, by its
    *working set*: what it uses less the file pages it has not touched lately, which the kernel
    would drop first (``memory.current`` less ``inactive_file`` in version 2, ``usage_in_bytes``
    less ``total_inactive_file`` in version 1). Kubernetes evicts pods by the same figure. Without
    any limit it is the machine's share that is not available.

    Args:
        root: directory under which ``proc`` and the control-group mounts are looked up.
    """
    machine = psutil.virtual_memory()
    shares = list(_shares(Path(root), machine.total))
    if shares:
        return max(shares)
    return 1.0 - float(machine.available) / float(machine.total)


def _shares(root: Path, total: int) -> Iterator[float]:
    for group, version in levels(root, "memory"):
        if version == 2:
            limit = _number(group / "memory.max")
            used = _number(group / "memory.current")
            droppable = _field(group / "memory.stat", "inactive_file")
        else:
            limit = _number(group / "memory.limit_in_bytes")
            used = _number(group / "memory.usage_in_bytes")
            droppable = _field(group / "memory.stat", "total_inactive_file")
        # A limit above the machine's memory is how version 1 says that there is none.
        if limit is not None and used is not None and 0 < limit < total:
            yield max(0, used - droppable) / limit


def _number(path: Path) -> int | None:
    text = "".join(lines(path)).strip()
    return int(text) if text.isdecimal() else None


def _field(path: Path, name: str) -> int:
    for line in lines(path):
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdecimal():
            return int(value)
    return 0

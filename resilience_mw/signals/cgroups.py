"""The control groups of this process, from its own up to the top that it can see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path


def levels(root: Path, controller: str) -> Iterator[tuple[Path, int]]:
    """Yield (directory, cgroup version) of our group and all its parents.

    A limit holds wherever in the tree it was set. Version 2 has one hierarchy for everything;
    version 1 has one for each controller, and both may be mounted (kernel documentation,
    cgroup-v2 and cgroup-v1/cgroups). What cannot be read yields nothing.

    Args:
        root: directory under which ``proc`` and the mounts are looked up.
        controller: what version 1 calls it: ``cpu``, ``memory``.
    """
    memberships = dict(_memberships(root, controller))
    for mounted, mount_point, version in _mounts(root, controller):
        path = memberships.get(version)
        if path is None:
            continue
        top = root / mount_point.lstrip("/")
        # A container sees its own group as the root of the mount, and nothing outside of it.
        inside = mounted == "/" or path == mounted or path.startswith(mounted + "/")
        below = path.removeprefix(mounted.rstrip("/")).strip("/") if inside else ""
        if ".." in below.split("/"):
            below = ""
        directory = top / below
        while directory != top:
            yield directory, version
            directory = directory.parent
        yield top, version


def lines(path: Path) -> list[str]:
    """Return the lines of a file, none if it cannot be read."""
    try:
        return path.read_text(errors="replace").splitlines()
    except (OSError, ValueError):
        return []


def _memberships(root: Path, controller: str) -> Iterator[tuple[int, str]]:
    for line in lines(root / "proc/self/cgroup"):
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0" and not controllers:
            yield 2, path
        elif controller in controllers.split(","):
            yield 1, path


def _mounts(root: Path, controller: str) -> Iterator[tuple[str, str, int]]:
    """Yield (root of the mount, mount point, version) from ``/proc/self/mountinfo``."""
    for line in lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or not kind:
            continue
        if kind[0] == "cgroup2":
            yield _unescape(fields[3]), _unescape(fields[4]), 2
        elif kind[0] == "cgroup" and controller in kind[-1].split(","):
            yield _unescape(fields[3]), _unescape(fields[4]), 1


def _unescape(path: str) -> str:
    """Undo mountinfo's octal escapes of space, tab, newline and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)

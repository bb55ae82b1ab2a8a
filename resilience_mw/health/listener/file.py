"""The file that the workers of a server share: where it is, and that it is nobody else's."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ...exceptions import ConfigError

LAYOUT = 1
"""What the file holds where; two versions of this package never share one."""


def open_file(port: int, size: int) -> tuple[Path, int]:
    """Open the file of a port, made if it is not there, in the first place that lets us.

    Args:
        port: of the listener.
        size: bytes; reserved, since whoever maps a file in a full memory is killed.

    Returns:
        The path and the descriptor.

    Raises:
        ConfigError: none does, or the file is not what we would have made.
    """
    name = name_of(port)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    tried: list[str] = []
    for place in places():
        path = place / name
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            if os.path.lexists(path):
                raise ConfigError(f"health.port: {path} cannot be used: {error.strerror}") from None
            tried.append(f"{place} ({error.strerror})")
            continue
        found = os.fstat(descriptor)
        private = stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077
        if not private or found.st_uid != os.getuid():
            os.close(descriptor)
            raise ConfigError(f"health.port: {path} must be a file of nobody else's (mode 0600)")
        try:
            _reserve(descriptor, size)
        except OSError as error:
            os.close(descriptor)
            tried.append(f"{place} ({error.strerror or error})")
            continue
        return path, descriptor
    where = ", ".join(tried) or "no directory"
    raise ConfigError(f"health.port needs a place for a small file; tried {where}")


def _reserve(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.ftruncate(descriptor, size)


def name_of(port: int) -> str:
    """Return what the file of a port is called, for this user in this container."""
    return f"resilience_mw-{LAYOUT}-{os.getuid()}-{_namespaces()}{port}"


def places() -> Iterator[Path]:
    """Return where it may be, best first."""
    # In memory if possible: whoever writes to a disk may wait for it.
    yield Path("/dev/shm")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        yield Path(runtime)
    with contextlib.suppress(OSError):
        yield Path(tempfile.gettempdir())


def _namespaces() -> str:
    """Return what tells this container from another, in which ports or processes are others."""
    try:
        return "".join(f"{os.stat(f'/proc/self/ns/{kind}').st_ino}-" for kind in ("net", "pid"))
    except OSError:
        return ""

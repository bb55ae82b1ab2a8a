"""Several processes write one file: one at a time, and never half of it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

RETRY = 0.01
"""Seconds between two tries to get a lock: a thread of gevent must not block in the system."""

if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _end(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _end(descriptor: int) -> None:
        # Not by closing alone: a child forked meanwhile has the same lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextlib.contextmanager
def locked(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock at `path`, which is a file of its own and stays there.

    Args:
        path: the lock file.
        timeout: seconds to try.

    Raises:
        TimeoutError: another process had it all that time.
        OSError: the lock file cannot be made.
    """
    descriptor = _lock_file(path)
    try:
        until = time.monotonic() + timeout
        while True:
            try:
                _try(descriptor)
                break
            except OSError as error:
                if not isinstance(error, BlockingIOError | PermissionError):
                    raise
                if time.monotonic() >= until:
                    raise TimeoutError(f"locked by another process for {timeout:g} s") from None
            time.sleep(RETRY)
        try:
            yield
        finally:
            _end(descriptor)
    finally:
        os.close(descriptor)


def _lock_file(path: Path) -> int:
    # A link here would have somebody make a file elsewhere.
    plain = getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, os.O_RDWR | plain)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | plain, 0o644)
        if sys.platform != "win32":
            # The umask of whoever is first must not lock all others out.
            os.fchmod(descriptor, 0o644)
        return descriptor
    except PermissionError:
        # Another user's, such as that of whoever ran the command first: to read it is enough for
        # a lock, except on some network file systems.
        return os.open(path, os.O_RDONLY | plain)


def replace(contents: dict[Path, bytes]) -> None:
    """Replace files, each atomically, in this order; nothing is replaced if one cannot be written.

    The caller holds the lock. Mode and owner stay; a file that is new has those of the last, and
    a last one that is new those of the process.

    Raises:
        OSError: the disk is full, or the directory cannot be written.
    """
    ready: list[tuple[Path, Path]] = []
    last = list(contents)[-1]
    try:
        for path, content in contents.items():
            beside = path.with_name(f".{path.name}.new")
            ready.append((beside, path))
            # What a writer left that was killed; under the lock there is no other.
            beside.unlink(missing_ok=True)
            _write(beside, path if path.exists() else last, content)
        for beside, path in ready:
            os.replace(beside, path)
    finally:
        for beside, _ in ready:
            beside.unlink(missing_ok=True)
    if sys.platform != "win32":
        _flush_directory(last.parent)


def _write(beside: Path, like: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with open(os.open(beside, flags, 0o666), "wb") as file:
        with contextlib.suppress(FileNotFoundError):
            was = like.stat()
            if sys.platform != "win32":
                # A file that root made from a worker's own must still be the worker's to read.
                # At least its group's, which anybody in the group may give it.
                for owner in (-1, was.st_uid):
                    with contextlib.suppress(PermissionError):
                        os.fchown(file.fileno(), owner, was.st_gid)
                os.fchmod(file.fileno(), was.st_mode & 0o7777)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

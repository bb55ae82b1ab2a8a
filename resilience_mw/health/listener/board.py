"""What the workers of one server tell each other: a small file with a slot for each.

A worker holds a lock on its slot for as long as it lives, and one of them holds another, which
makes it the one that listens. The locks are those of ``fcntl(2)``: they end with the process that
took them, however it ends, and no child inherits them.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import stat
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...exceptions import ConfigError

_SLOT = struct.Struct("=qqd????4x")
_HEADER = struct.Struct("=q??6x")
_HEADER_SIZE = 64
_COUNT = 512
"""Workers that one port can speak for; far more than anybody runs on a host."""

_SIZE = _HEADER_SIZE + _COUNT * _SLOT.size


@dataclass(frozen=True)
class Slot:
    """What one worker says of itself.

    Attributes:
        pid: its process.
        family: the process that all workers of its server come from.
        beat: when its event loop last turned (monotonic seconds); 0 = it has none.
        started, ready: how far it is.
        leaving: it is about to end.
    """

    pid: int
    family: int
    beat: float = 0.0
    started: bool = False
    ready: bool = False
    leaving: bool = False


class Board:
    """One slot of the file, and a view of the others.

    Args:
        port: of the listener, which the file belongs to.

    Raises:
        ConfigError: there is no place for the file, or somebody else's is in it.
    """

    def __init__(self, port: int) -> None:
        self._descriptor = _open(port)
        self._map = mmap.mmap(self._descriptor, _SIZE)
        self._mine = -1
        self.elected = False
        """Whether this process is the one that listens, or is about to."""

    def join(self) -> None:
        """Take a slot.

        Raises:
            ConfigError: all are taken.
        """
        for number in range(_COUNT):
            if self._lock(1 + number):
                self._mine = number
                return
        raise ConfigError(f"health.port can speak for at most {_COUNT} workers")

    def write(self, slot: Slot) -> None:
        """Say something else of this process."""
        state = (slot.started, slot.ready, slot.leaving, True)
        self._put(self._mine, slot.pid, slot.family, slot.beat, *state)

    def others(self) -> Iterator[Slot]:
        """Yield what the other workers that are alive say of themselves."""
        for number in range(_COUNT):
            pid, family, beat, *state, taken = _SLOT.unpack_from(self._map, self._offset(number))
            if not taken or number == self._mine:
                continue
            if self._lock(1 + number):
                # Its process is gone. Nobody else can be writing here: the slot is ours.
                self._put(number, 0, 0, 0.0, False, False, False, False)
                self._unlock(1 + number)
            else:
                yield Slot(pid, family, beat, *state)

    def elect(self) -> bool:
        """Become the one that listens, if nobody is; returns whether this process is."""
        if not self.elected and self._lock(0):
            self.elected = True
            self.declare(listening=False)
        return self.elected

    def declare(self, *, listening: bool, resigning: bool = False) -> None:
        """Tell the others whether the port is open, and whether another should stand by."""
        _HEADER.pack_into(self._map, 0, os.getpid(), resigning, listening)

    def resign(self) -> None:
        """Let another listen."""
        if self.elected:
            self.elected = False
            self.declare(listening=False)
            self._unlock(0)

    @property
    def listener(self) -> tuple[int, bool, bool]:
        """The process that was elected last, whether it is about to resign, whether it listens."""
        pid, resigning, listening = _HEADER.unpack_from(self._map, 0)
        return pid, resigning, listening

    def close(self) -> None:
        """Leave the slot, and with it every lock of this process."""
        if self._mine >= 0:
            self._put(self._mine, 0, 0, 0.0, False, False, False, False)
        self.abandon()

    def abandon(self) -> None:
        """Close the file without a word: in a child of the process that the slot belongs to."""
        self.elected = False
        self._mine = -1
        self._map.close()
        os.close(self._descriptor)

    def _put(self, number: int, *values: object) -> None:
        _SLOT.pack_into(self._map, self._offset(number), *values)

    @staticmethod
    def _offset(number: int) -> int:
        return _HEADER_SIZE + number * _SLOT.size

    def _lock(self, place: int) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            return False
        return True

    def _unlock(self, place: int) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, place)


def _open(port: int) -> int:
    """Open the file, made if it is not there, in the first place that lets us.

    Raises:
        ConfigError: none does, or the file is not what we would have made.
    """
    name = f"resilience_mw-{os.getuid()}-{_network()}{port}"
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    tried = list(_places())
    for place in tried:
        path = place / name
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            if os.path.lexists(path):
                raise ConfigError(f"health.port: {path} cannot be used: {error.strerror}") from None
            continue
        found = os.fstat(descriptor)
        private = stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077
        if not private or found.st_uid != os.getuid():
            os.close(descriptor)
            raise ConfigError(f"health.port: {path} must be a file of nobody else's (mode 0600)")
        try:
            os.ftruncate(descriptor, _SIZE)
        except OSError:
            os.close(descriptor)
            continue
        return descriptor
    where = ", ".join(map(str, tried)) or "no directory"
    raise ConfigError(f"health.port needs a place for a small file; tried {where}")


def _places() -> Iterator[Path]:
    # In memory if possible: whoever writes to a disk may wait for it.
    yield Path("/dev/shm")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        yield Path(runtime)
    with contextlib.suppress(OSError):
        yield Path(tempfile.gettempdir())


def _network() -> str:
    """Return what tells this network from that of another container, in which ports are others."""
    try:
        return f"{os.stat('/proc/self/ns/net').st_ino}-"
    except OSError:
        return ""

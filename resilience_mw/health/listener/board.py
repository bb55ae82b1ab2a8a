"""What the workers of one server tell each other: a small file with a slot for each.

A worker holds a lock on its slot for as long as it lives, and one of them holds another, which
makes it the one that listens. The locks are those of ``fcntl(2)``: they end with the process that
took them, however it ends, and no child inherits them.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...exceptions import ConfigError
from .file import open_file

_SLOT = struct.Struct("qqd???5x")
_HEADER = struct.Struct("=q??6x")
_HEADER_SIZE = 64
_COUNT = 512
"""Workers that one port can speak for; far more than anybody runs on a host."""

SIZE = _HEADER_SIZE + _COUNT * _SLOT.size
"""Bytes."""

_CHAIR, _DOOR, _FIRST = 0, 1, 2
"""What is locked: listening, coming and going, and the slots from the first on."""

_NOBODY = (0, 0, 0.0, False, False, False)

_KNOCKS = 200


@dataclass(frozen=True)
class Slot:
    """What one worker says of itself.

    Attributes:
        pid: its process.
        family: the process that all workers of its server come from.
        beat: when its event loop last turned (monotonic seconds); 0 = it has none.
        started, ready: how far it is.
    """

    pid: int
    family: int
    beat: float = 0.0
    started: bool = False
    ready: bool = False


class Board:
    """One slot of the file, and a view of the others.

    Args:
        port: of the listener, which the file belongs to.

    Raises:
        ConfigError: there is no place for the file, or somebody else's is in it.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._mine = -1
        self._former: Board | None = None  # the file before it was removed, for who is still there
        self.elected = False
        """Whether this process is the one that listens, or is about to."""
        self._open()

    def join(self) -> None:
        """Take a slot.

        Raises:
            ConfigError: all are taken.
        """
        self._knock()
        while not self._is_current():
            self._close()
            self._open()
            self._knock()
        for number in range(_COUNT):
            if self._lock(_FIRST + number):
                self._mine = number
                self._unlock(_DOOR)
                return
        self._unlock(_DOOR)
        raise ConfigError(f"health.port can speak for at most {_COUNT} workers")

    def renew(self, *, make: bool) -> bool:
        """Go on in the file that all who come now find, if that is another; returns whether.

        Cleaners of temporary files remove ours, and so does logind when its user has logged out.

        Args:
            make: whether to make it if there is none.

        Raises:
            ConfigError: it cannot be made, or used.
        """
        if self._mine < 0 or self._is_current() or not (make or os.path.lexists(self._path)):
            if self._former is not None and not any(True for _ in self._former.others()):
                self._leave_former()
            return False
        self._leave_former()
        former = copy.copy(self)
        self._open()
        self._former = former
        former._put(former._mine, *_NOBODY)
        self._mine = -1
        self.elected = False
        self.join()
        return True

    def _leave_former(self) -> None:
        if self._former is not None:
            self._former._close()
            self._former = None

    def write(self, slot: Slot) -> None:
        """Say something else of this process."""
        state = (slot.started, slot.ready, True)
        self._put(self._mine, slot.pid, slot.family, slot.beat, *state)

    def others(self, wanted: Callable[[Slot], bool] = lambda _: True) -> Iterator[Slot]:
        """Yield what the other workers that are alive say of themselves.

        Args:
            wanted: whether it matters. To see whether a worker lives is a system call, for which
                the interpreter is let go of, and busy threads are slow to give it back.
        """
        for number in range(_COUNT):
            pid, family, beat, *state, taken = _SLOT.unpack_from(self._map, self._offset(number))
            slot = Slot(pid, family, beat, *state)
            if not taken or number == self._mine or not wanted(slot):
                continue
            if self._lock(_FIRST + number):
                # Its process is gone. Nobody else can be writing here: the slot is ours.
                self._put(number, *_NOBODY)
                self._unlock(_FIRST + number)
            else:
                yield slot
        if self._former is not None:
            yield from self._former.others(wanted)

    def elect(self) -> bool:
        """Become the one that listens, if nobody is; returns whether this process is."""
        if not self.elected and self._lock(_CHAIR):
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
            self._unlock(_CHAIR)

    @property
    def listener(self) -> tuple[int, bool, bool]:
        """The process that was elected last, whether it is about to resign, whether it listens."""
        pid, resigning, listening = _HEADER.unpack_from(self._map, 0)
        return pid, resigning, listening

    def close(self) -> None:
        """Leave the slot, and with it every lock of this process; the last one removes the file."""
        if self._mine >= 0:
            self._put(self._mine, *_NOBODY)
            self._knock()
            if self._is_current() and not any(True for _ in self.others()):
                with contextlib.suppress(OSError):
                    os.unlink(self._path)
        self.abandon()

    def abandon(self) -> None:
        """Close the file without a word: in a child of the process that the slot belongs to."""
        self.elected = False
        self._mine = -1
        self._leave_former()
        self._close()

    def _open(self) -> None:
        path, descriptor = open_file(self._port, SIZE)
        try:
            self._map = mmap.mmap(descriptor, SIZE)
        except BaseException:
            os.close(descriptor)
            raise
        self._path, self._descriptor = path, descriptor

    def _close(self) -> None:
        self._map.close()
        os.close(self._descriptor)

    def _knock(self) -> None:
        """Be the only one that comes or goes: who comes must not find a file that is removed."""
        for _ in range(_KNOCKS):
            if self._lock(_DOOR):
                return
            time.sleep(1.0 / _KNOCKS)  # and then go on: somebody may have been stopped in there

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except OSError:
            return False

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

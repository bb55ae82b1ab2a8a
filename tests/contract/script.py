"""What the app of a contract test does, step by step, whatever its protocol; and one request to it.

The test and the app meet at each `Pause`: the app waits there until the test says `go`.
"""

from __future__ import annotations

import itertools
import queue
import socket
import threading
from asyncio import CancelledError
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

WAIT = 10.0
"""Seconds after which a meeting that does not happen fails the test."""


class Boom(Exception):
    """Raised by an app."""


@dataclass(frozen=True)
class Start:
    """Start the response."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Chunk:
    """Send a part of the body."""

    data: bytes


@dataclass(frozen=True)
class Pause:
    """Tell the test, and wait until it says go."""


@dataclass(frozen=True)
class Fail:
    """Raise `Boom`."""


@dataclass(frozen=True)
class End:
    """End the body; what follows is work that the client does not see."""


Step = Start | Chunk | Pause | Fail | End
Script = tuple[Step, ...]

ANSWER: Script = (Start(), Chunk(b"ok"))
HOLD: Script = (Pause(), *ANSWER)
STREAM: Script = (Start(), Chunk(b"first "), Pause(), Chunk(b"last"))


@dataclass
class Response:
    """What a server got from the app."""

    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    chunks: list[bytes] = field(default_factory=list)
    error: BaseException | None = None

    def header(self, name: str) -> str | None:
        """Return the only header of that name."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(values) <= 1, f"{name} is there {len(values)} times"
        return values[0] if values else None

    @property
    def body(self) -> bytes:
        """The body so far."""
        return b"".join(self.chunks)

    @property
    def failed(self) -> bool:
        """Whether the client saw a failure: an exception, or a framework's answer to one."""
        return self.error is not None or self.status == 500


class Call:
    """One request, which runs elsewhere while the test goes on."""

    everyone: dict[str, Call] = {}  # noqa: RUF012 - the app finds its call here, by header
    _numbers = itertools.count()

    def __init__(self, script: Script, path: str, method: str, root: str, closes: int) -> None:
        self.number = next(self._numbers)
        self.script = script
        self.path, self.method, self.root, self.closes = path, method, root, closes
        self.response = Response()
        self.entered = threading.Event()
        self.ended = threading.Event()
        self.cancel: Callable[[], object] = lambda: None
        self.server_socket, self._client_socket = socket.socketpair()
        self.gone: Future[None] = Future()
        self._pauses: queue.Queue[Future[None]] = queue.Queue()
        self._held: Future[None] | None = None
        self._given_up = False
        self.everyone[str(self.number)] = self

    # -- the app's side -----------------------------------------------------------------------

    def pause(self) -> Future[None]:
        """Return what the app has to wait for."""
        held: Future[None] = Future()
        if self._given_up:
            held.set_result(None)
        self._pauses.put(held)
        return held

    # -- the test's side ----------------------------------------------------------------------

    def paused(self) -> Call:
        """Wait until the app pauses."""
        self._held = self._pauses.get(timeout=WAIT)
        return self

    def go(self) -> Call:
        """Let the app go on from its pause."""
        assert self._held is not None, "the app is not paused"
        with suppress(InvalidStateError):  # its task was cancelled meanwhile
            self._held.set_result(None)
        self._held = None
        return self

    def leave(self) -> Call:
        """Be a client that closes its connection."""
        self._client_socket.close()
        with suppress(InvalidStateError):
            self.gone.set_result(None)
        return self

    def result(self) -> Response:
        """Wait until the server is done with this request; raise what no script raises."""
        assert self.ended.wait(WAIT), "the request does not end"
        if not isinstance(self.response.error, Boom | CancelledError | None):
            raise self.response.error
        return self.response

    def finish(self) -> Response:
        """Let the app go on to its end."""
        return self.go().result()

    def give_up(self) -> None:
        """Let the app run to its end, whatever pauses are left: the test is over."""
        self._given_up = True
        for held in (self._held, *self._pauses.queue):
            if held is not None:
                with suppress(InvalidStateError):
                    held.set_result(None)

    def close(self) -> None:
        """Free what the request holds."""
        if not self.ended.wait(WAIT / 4):
            self.leave()
            self.cancel()
        assert self.ended.wait(WAIT), "the request does not end"
        self.server_socket.close()
        self._client_socket.close()
        del self.everyone[str(self.number)]

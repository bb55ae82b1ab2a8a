"""A worker with an event loop, turn by turn.

A turn takes what is ready, runs it in order, and only then looks at sockets and timers again; what
becomes ready meanwhile waits for the next turn. Between the bytes of a request and its handler lie
two turns: one that parses, one in which the task made by the parser takes its first step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ..core.exchange import Reply
from ..core.gate import Gate
from .gil import INTERVAL, Gil
from .handler import Handler, Kind
from .load import Load
from .request import Callback, Request
from .simulation import Simulation
from .worker import Worker


class EventLoop(Simulation):
    """One event loop of ``asyncio`` or ``uvloop``, and the framework's threads beside it."""

    def __init__(
        self, worker: Worker, load: Load, handlers: Sequence[Handler], gate: Gate | None
    ) -> None:
        super().__init__(worker, load, handlers, gate)
        self._one_accept = worker.kind == "uvloop"
        # asyncio makes the transport in a task and then starts reading in two further callbacks;
        # uvloop reads in the turn after the accept.
        self._hops = 0 if self._one_accept else 2
        self._ready: deque[tuple[Callback, Any]] = deque()
        self._accepting: deque[Request] = deque()
        self._turn_began = self._last_turn_began = 0.0
        self._idle = 0.0
        self._tokens = worker.tokens
        self._for_token: deque[tuple[Request, Kind, float]] = deque()
        self._gil = Gil()
        self._kept = 0.0  # seconds for which the loop has kept the GIL

    def busy(self) -> float:
        """Return the seconds in which the loop did not idle."""
        return self.now - self._idle

    def backlog(self) -> int:
        """Return how many connections wait to be accepted."""
        if not self.load.new_connections:
            return 0
        return len(self._accepting) + self.sent_unseen()

    def pool_waiting(self) -> int:
        """Return how many calls wait for a token."""
        return len(self._for_token)

    def resume(self, call: Callback, request: Request) -> None:
        """Run ``call`` in the next turn."""
        self._ready.append((call, request))

    def step(self) -> None:
        """Run one turn of the loop."""
        ready = self._ready
        if not ready and not self._accepting:
            self._sleep()
        if self._gil.jobs:
            self._lose_gil()
        self._last_turn_began, self._turn_began = self._turn_began, self.now
        self.turns += 1
        self.now += self.worker.turn * self.stretch
        if self.load.new_connections:
            self._accepting.extend(self.arrivals())
            if self._accepting:
                ready.append((self._accept, None))
        else:
            for request in self.arrivals():
                ready.append((self._read, request))
        ready.extend(self.due())
        for _ in range(len(ready)):
            call, argument = ready.popleft()
            call(argument)

    def reply(self, request: Request, reply: Reply) -> None:
        """Send a refusal."""
        self._spend(self.worker.refuse)
        self.settle(request, reply.status, reply.reason)

    def hold(self, request: Request) -> None:
        """Spend what waiting costs."""
        self._spend(self.worker.enqueue)

    # -- a request before the gate ------------------------------------------------------------

    def _accept(self, _: None) -> None:
        accepting = self._accepting
        for _number in range(1 if self._one_accept else len(accepting)):
            request = accepting.popleft()
            self._spend(self.worker.accept)
            request.hops = self._hops
            self._ready.append((self._connect, request))

    def _connect(self, request: Request) -> None:
        if request.hops:
            request.hops -= 1
            self._ready.append((self._connect, request))
        else:
            self._read(request)

    def _read(self, request: Request) -> None:
        self._spend(self.worker.parse)
        self._ready.append((self._begin, request))

    def _begin(self, request: Request) -> None:
        request.turn_began = self._last_turn_began
        self.enter(request)

    # -- a request behind it ------------------------------------------------------------------

    def proceed(self, request: Request) -> None:
        """Take the first step of an admitted request."""
        self._spend(self.worker.serve / 2)
        self._go_on(request)

    def _go_on(self, request: Request) -> None:
        handler = request.handler
        while request.position < len(handler):
            segment = handler[request.position]
            request.position += 1
            kind = segment.kind
            seconds = self.draw(segment)
            if kind is Kind.COMPUTE:
                self._spend(seconds)
                continue
            if kind is Kind.BREATHE:
                self._ready.append((self._go_on, request))
            elif kind is Kind.WAIT:
                self.at(self.now + seconds, self._go_on, request)
            elif kind is Kind.POOL:
                self._use_pool(request, segment.pool, seconds)
            elif kind is Kind.ANSWER:
                self.answered(request)
                self.stream(request)
                continue
            else:
                self._use_thread(request, kind, seconds)
            return
        self._spend(self.worker.serve / 2)
        self.finished(request)

    def _use_pool(self, request: Request, name: str, seconds: float) -> None:
        pool = self.pools[name]
        if pool.free:
            pool.free -= 1
            self.at(self.now + seconds, self._leave_pool, (request, name))
        else:
            pool.waiting.append((request, seconds))

    def _leave_pool(self, held: tuple[Request, str]) -> None:
        request, name = held
        pool = self.pools[name]
        pool.free += 1
        if pool.waiting:
            other, seconds = pool.waiting.popleft()
            self._use_pool(other, name, seconds)
        self._go_on(request)

    # -- threads and the GIL ------------------------------------------------------------------

    def _use_thread(self, request: Request, kind: Kind, seconds: float) -> None:
        if not self._tokens:
            self._for_token.append((request, kind, seconds))
            return
        self._tokens -= 1
        if kind is Kind.THREAD_WAIT:
            self.at(self.now + seconds, self._leave_thread, request)
        else:
            self._gil.add(seconds * self.stretch, self._leave_thread, request)

    def _leave_thread(self, request: Request) -> None:
        self._tokens += 1
        if self._for_token:
            self._use_thread(*self._for_token.popleft())
        self._go_on(request)

    def _spend(self, seconds: float) -> None:
        seconds *= self.stretch
        if self._gil.jobs:
            self._kept += seconds
            while self._kept > INTERVAL:
                self._kept -= INTERVAL
                self._lose_gil()
        self.now += seconds

    def _lose_gil(self) -> None:
        """Let threads compute until one of them has to give the GIL back."""
        if self._gil.jobs:
            self._run_threads(self.now + INTERVAL)

    def _sleep(self) -> None:
        began = self.now
        until = max(self.now, self.next_event())
        if self._gil.jobs:
            self._run_threads(until)
        else:
            self.now = until
        self._kept = 0.0
        self._idle += self.now - began

    def _run_threads(self, until: float) -> None:
        self.now, job = self._gil.run(self.now, until)
        if job is not None:
            self._ready.append((job.call, job.request))

"""A WSGI worker: one queue, so many threads, one GIL.

The queue before the threads stands for the kernel's accept queue and the server's own together:
a middleware sees neither, only how old a request is when a thread takes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ..core.exchange import Reply
from ..core.gate import Gate
from .gil import Gil
from .handler import Handler, Kind
from .load import Load
from .request import Callback, Request
from .simulation import Simulation
from .worker import Worker


class Threads(Simulation):
    """A pool of threads under one GIL."""

    def __init__(
        self, worker: Worker, load: Load, handlers: Sequence[Handler], gate: Gate | None
    ) -> None:
        super().__init__(worker, load, handlers, gate)
        self._queue: deque[Request] = deque()
        self._free = worker.threads
        self._gil = Gil()
        self._computed = 0.0
        self._occupied = 0.0
        self._seen = (0.0, 0.0)
        self._busy = 0.0

    def busy(self) -> float:
        """Return the seconds of full use: of the threads or of the CPU, whichever is more."""
        occupied = self._occupied / self.worker.threads
        before = self._seen
        self._busy += max(occupied - before[0], self._computed - before[1])
        self._seen = (occupied, self._computed)
        return self._busy

    def resume(self, call: Callback, request: Request) -> None:
        """Run ``call`` now: the thread is there."""
        call(request)

    def step(self) -> None:
        """Go to the next moment at which something happens."""
        began = self.now
        until = max(began, self.next_event())
        job = None
        if self._gil.jobs:
            until, job = self._gil.run(began, until)
            self._computed += until - began
        self._occupied += (until - began) * (self.worker.threads - self._free)
        self.now = until
        if job is not None:
            job.call(job.request)
        for call, argument in self.due():
            call(argument)
        self._queue.extend(self.arrivals())
        while self._free and self._queue:
            self._free -= 1
            self._take(self._queue.popleft())

    def reply(self, request: Request, reply: Reply) -> None:
        """Send a refusal."""

        def sent(_: Request) -> None:
            self.settle(request, reply.status, reply.reason)
            self._free += 1

        self._compute(self.worker.refuse, sent, request)

    def hold(self, request: Request) -> None:
        """Spend nothing: a thread that waits sleeps."""

    def proceed(self, request: Request) -> None:
        """Start an admitted request."""
        self._compute(self.worker.serve / 2, self._go_on, request)

    def settle(self, request: Request, status: int, reason: str | None = None) -> None:
        """Record how a request ended for its client."""
        super().settle(request, status, reason)
        if not status:  # it left the gate's queue, and its thread with it
            self._free += 1

    def _take(self, request: Request) -> None:
        cost = self.worker.parse
        if self.load.new_connections:
            cost += self.worker.accept
        self._compute(cost, self._begin, request)

    def _begin(self, request: Request) -> None:
        request.turn_began = self.now
        self.enter(request)

    def _compute(self, seconds: float, call: Callback, request: Request) -> None:
        self._gil.add(seconds * self.stretch, call, request)

    def _go_on(self, request: Request) -> None:
        handler = request.handler
        while request.position < len(handler):
            segment = handler[request.position]
            request.position += 1
            seconds = self.draw(segment)
            if segment.kind in (Kind.COMPUTE, Kind.THREAD_COMPUTE):
                self._compute(seconds, self._go_on, request)
            elif segment.kind is Kind.POOL:
                self._use_pool(request, segment.pool, seconds)
            elif segment.kind is Kind.ANSWER:
                self.answered(request)
                self.stream(request)
                continue
            elif segment.kind is Kind.BREATHE:
                continue
            else:
                self.at(self.now + seconds, self._go_on, request)
            return
        self._compute(self.worker.serve / 2, self._end, request)

    def _end(self, request: Request) -> None:
        self.finished(request)
        self._free += 1

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

"""What both kinds of worker share: requests, clients, the gate, and virtual time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any

from ..core.adaptive import AdaptiveGate
from ..core.exchange import Reply
from ..core.gate import Gate
from ..core.laws import Senses
from ..core.ticket import Ticket
from .handler import Handler, Segment
from .load import Load
from .request import Callback, Pool, Request
from .result import Outcome, Result, Sample
from .worker import Worker

SAMPLE_EVERY = 0.1
"""Seconds between two samples of the gate's limit."""


class Simulation(ABC):
    """Virtual time and the life of a request; subclasses say what runs when."""

    def __init__(
        self, worker: Worker, load: Load, handlers: Sequence[Handler], gate: Gate | None
    ) -> None:
        self.worker = worker
        self.load = load
        self.gate = gate
        self.now = 0.0
        self.turns = 0
        self.stretch = 1.0 / (1.0 - worker.stolen)
        self.random = Random(worker.seed)
        self.times = load.arrivals()
        self.arrived = 0
        self.until = load.seconds + load.patience
        self.pools = {name: Pool(size) for name, size in worker.pools.items()}
        self.samples: list[Sample] = []
        self._handlers = handlers
        self._routes = self._draw_routes()
        self._outcomes: list[Outcome | None] = [None] * len(self.times)
        self._open = len(self.times)
        self._timers: list[tuple[float, int, Callback, Any]] = []
        self._sequence = 0
        self._sampled = -SAMPLE_EVERY
        for at, seconds in worker.pauses:
            self.at(at, self._pause, seconds)
        if gate is not None:
            self.at(worker.tick, self._tick, None)
        if isinstance(gate, AdaptiveGate):
            gate.listen(self.sense, self.backlog)

    def run(self) -> Result:
        """Run until every request has been dealt with, or its client has left."""
        while self._open and self.now < self.until:
            self.step()
        patience = self.load.patience
        for number, outcome in enumerate(self._outcomes):
            if outcome is None:
                route = self._routes[number]
                self._outcomes[number] = Outcome(self.times[number], patience, 0, None, route)
        outcomes = [outcome for outcome in self._outcomes if outcome is not None]
        return Result(outcomes, self.samples, self.load, self.busy(), self.now)

    # -- for subclasses to say ----------------------------------------------------------------

    @abstractmethod
    def step(self) -> None:
        """Let something happen."""

    @abstractmethod
    def busy(self) -> float:
        """Return for how many seconds the worker worked so far."""

    @abstractmethod
    def resume(self, call: Callback, request: Request) -> None:
        """Have ``call(request)`` run as soon as the worker comes to it."""

    @abstractmethod
    def proceed(self, request: Request) -> None:
        """Run an admitted request's handler from its position on."""

    @abstractmethod
    def reply(self, request: Request, reply: Reply) -> None:
        """Spend what a refusal costs, then call `refused`."""

    @abstractmethod
    def hold(self, request: Request) -> None:
        """Spend what waiting in the gate's queue costs."""

    def pool_waiting(self) -> int:
        """Return how many calls wait for a thread of the framework's pool."""
        return 0

    # -- time ---------------------------------------------------------------------------------

    def at(self, when: float, call: Callback, argument: Any) -> None:
        """Call ``call(argument)`` at ``when``, or as soon after it as the worker can."""
        self._sequence += 1
        heappush(self._timers, (when, self._sequence, call, argument))

    def due(self) -> list[tuple[Callback, Any]]:
        """Take the timers whose time has come."""
        timers, now = self._timers, self.now
        calls = []
        while timers and timers[0][0] <= now:
            _, _, call, argument = heappop(timers)
            calls.append((call, argument))
        return calls

    def next_event(self) -> float:
        """Return when the next request is sent or the next timer is due."""
        when = self._timers[0][0] if self._timers else self.until
        if self.arrived < len(self.times):
            when = min(when, self.times[self.arrived])
        return min(when, self.until)

    def draw(self, segment: Segment) -> float:
        """Return how long a segment takes this time."""
        seconds = segment.seconds
        return seconds(self.random) if callable(seconds) else seconds

    def _pause(self, seconds: float) -> None:
        self.now += seconds

    # -- what the gate senses -----------------------------------------------------------------

    def sense(self, now: float) -> Senses:
        """Return the readings that a driver would give."""
        return Senses(now, self.busy(), self.turns, self.pool_waiting())

    def backlog(self) -> int:
        """Return how many connections wait to be accepted."""
        return 0

    def sent_unseen(self) -> int:
        """Return how many requests were sent that the worker has not looked at."""
        return bisect_right(self.times, self.now, self.arrived) - self.arrived

    def _tick(self, _: None) -> None:
        gate = self.gate
        if gate is None:
            return
        gate.tick(self.now)
        if self.now - self._sampled >= SAMPLE_EVERY:
            self._sampled = self.now
            self.samples.append(Sample(self.now, gate.limit, gate.inflight, gate.queued))
        self.at(self.now + self.worker.tick, self._tick, None)

    # -- the life of a request ----------------------------------------------------------------

    def arrivals(self) -> list[Request]:
        """Take the requests that have been sent by now."""
        requests = []
        times, now, age = self.times, self.now, self.worker.waited
        number = self.arrived
        while number < len(times) and times[number] <= now:
            route = self._routes[number]
            requests.append(Request(number, times[number], route, self._handlers[route], age))
            number += 1
        self.arrived = number
        return requests

    def enter(self, request: Request) -> None:
        """Ask the gate about a request, as a driver does."""
        request.arrived = self.now
        if self.gate is None:
            self.proceed(request)
            return
        decision = self.gate.enter(request)
        if decision is None:
            request.gated = True
            self.proceed(request)
        elif isinstance(decision, Reply):
            self.reply(request, decision)
        elif isinstance(decision, Ticket):
            self._wait(request, decision)
        else:
            self.proceed(request)

    def _wait(self, request: Request, ticket: Ticket) -> None:
        gate = self.gate
        if gate is None:
            return
        self.hold(request)

        def woken(_: Request) -> None:
            if ticket.granted:
                request.admitted = self.now
                request.gated = True
                self.proceed(request)
            elif ticket.reply is not None:
                self.reply(request, ticket.reply)

        def leave(_: Request) -> None:
            if ticket.waiting:
                gate.abandon(ticket, self.now)
                self.settle(request, 0)

        ticket.wake = lambda: self.resume(woken, request)
        self.at(ticket.expires, lambda _: gate.expire(ticket, self.now), None)
        self.at(request.sent + self.load.patience, leave, request)

    def answered(self, request: Request) -> None:
        """Note that the response has started."""
        request.status = 200
        request.answered_at = self.now
        self.settle(request, 200)

    def stream(self, request: Request) -> None:
        """Note that a response goes on after it has started."""
        if request.gated and isinstance(self.gate, AdaptiveGate):
            self.gate.stream(request)

    def finished(self, request: Request) -> None:
        """Note that the app has ended."""
        if not request.status:
            self.answered(request)
        if request.gated and self.gate is not None:
            self.gate.exit(request, self.now)

    def settle(self, request: Request, status: int, reason: str | None = None) -> None:
        """Record how a request ended for its client, who may have left before."""
        if self._outcomes[request.number] is not None:
            return
        self._open -= 1
        latency = self.now - request.sent
        if latency > self.load.patience:
            latency, status, reason = self.load.patience, 0, None
        outcome = Outcome(request.sent, latency, status, reason, request.route)
        self._outcomes[request.number] = outcome

    def _draw_routes(self) -> list[int]:
        count = len(self._handlers)
        if count == 1:
            return [0] * len(self.times)
        return Random(self.load.seed + 1).choices(
            range(count), weights=self.load.shares, k=len(self.times)
        )

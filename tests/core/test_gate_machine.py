"""Gates and tickets against a model that is too simple to be wrong."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from resilience_mw.core import AIMD, AdaptiveGate, Gate, Reply, Senses, Ticket, TicketState, Window

from .requests import Request


class Whim(AIMD):
    """A law that sets whatever limit it is told."""

    def __init__(self, limit: int) -> None:
        super().__init__(initial_limit=limit, max_limit=10, queue_timeout=1.0)
        self.windows: list[Window] = []

    def update(self, window: Window) -> int:
        """Keep the limit, and what was measured."""
        self.windows.append(window)
        return self.limit

    def patience(self, now: float) -> float:
        """Let requests wait for as long as it is told."""
        return self.queue_timeout


class GateMachine(RuleBasedStateMachine):
    """Requests come, wait, run, end, leave and expire in any order.

    The model: who runs, who waits, who was granted a slot and has not noticed.
    """

    gate: Gate
    max_queue: int

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.running: list[Request] = []
        self.waiting: list[tuple[Ticket, Request]] = []
        self.granted: list[tuple[Ticket, Request]] = []
        self.ended: list[tuple[Ticket, TicketState]] = []
        self.wakes: dict[Ticket, int] = {}
        self.arrived = self.ran = self.left = 0
        self.draining = False
        self.shrunk_to = 0  # what runs may exceed the limit down to this

    @initialize(limit=st.integers(1, 3), max_queue=st.integers(0, 3))
    def build(self, limit: int, max_queue: int) -> None:
        """Make the gate."""
        self.max_queue = max_queue
        self.gate = Gate(limit, max_queue=max_queue, max_wait=1.0)

    # -- what can happen -----------------------------------------------------------------------

    @rule()
    def arrive(self) -> None:
        """A request comes."""
        self.arrived += 1
        owned = len(self.running) + len(self.granted)
        request = Request(self.now)
        decision = self.gate.enter(request)
        if owned < self.gate.limit:
            assert decision is None
            self.running.append(request)
            self.ran += 1
        elif self.draining or len(self.waiting) >= self.max_queue or self.saturated():
            assert isinstance(decision, Reply)
            assert decision.reason in ("limit", "queue_full", "draining", "saturated")
        else:
            assert isinstance(decision, Ticket)
            self.wakes[decision] = 0
            decision.wake = lambda: self.woken(decision)
            self.waiting.append((decision, request))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """A running request ends."""
        index = data.draw(st.integers(0, len(self.running) - 1))
        self.gate.exit(self.running.pop(index), self.now)
        self.settle()

    @precondition(lambda self: self.granted)
    @rule(data=st.data(), leaves=st.booleans())
    def notice(self, data: st.DataObject, leaves: bool) -> None:
        """A waiter learns that it was granted, and runs, or has left in the same moment."""
        index = data.draw(st.integers(0, len(self.granted) - 1))
        ticket, request = self.granted.pop(index)
        if leaves:
            self.gate.abandon(ticket, self.now)
            self.ended.append((ticket, TicketState.ABANDONED))
            self.left += 1
        else:
            self.running.append(request)
            self.ended.append((ticket, TicketState.GRANTED))
            self.ran += 1
        self.settle()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), how=st.sampled_from(["expire", "deadline", "abandon"]))
    def stop_waiting(self, data: st.DataObject, how: str) -> None:
        """A wait ends without a grant."""
        index = data.draw(st.integers(0, len(self.waiting) - 1))
        ticket, _ = self.waiting.pop(index)
        if how == "abandon":
            self.gate.abandon(ticket, self.now)
            self.ended.append((ticket, TicketState.ABANDONED))
            self.left += 1
        else:
            at = ticket.expires if how == "expire" else ticket.expires - 0.5
            self.gate.expire(ticket, at)
            self.ended.append((ticket, TicketState.REFUSED))
            assert ticket.reply is not None
            assert ticket.reply.status == (503 if how == "expire" else 504)
        self.settle()

    @precondition(lambda self: self.ended)
    @rule(data=st.data(), how=st.sampled_from(["expire", "abandon"]))
    def repeat(self, data: st.DataObject, how: str) -> None:
        """Whoever is late with an end changes nothing: a timer, a second cancellation."""
        ticket, state = data.draw(st.sampled_from(self.ended))
        if how == "abandon" and state is TicketState.GRANTED:
            return  # it runs: nobody may give its slot away
        getattr(self.gate, how)(ticket, self.now)

    @rule()
    def drain(self) -> None:
        """The server is told to stop."""
        self.gate.drain()
        self.draining = True
        self.ended += [(ticket, TicketState.REFUSED) for ticket, _ in self.waiting]
        self.waiting.clear()

    # -- the model -----------------------------------------------------------------------------

    def saturated(self) -> bool:
        """Whether a full gate refuses at once."""
        return False

    def woken(self, ticket: Ticket) -> None:
        """Count the calls of `wake`."""
        self.wakes[ticket] += 1

    def settle(self) -> None:
        """Grant in order, as long as there are slots."""
        while self.waiting and len(self.running) + len(self.granted) < self.gate.limit:
            self.granted.append(self.waiting.pop(0))

    # -- what always holds ---------------------------------------------------------------------

    @invariant()
    def the_counts_agree_with_the_model(self) -> None:
        """In flight, waiting, admitted, refused."""
        if not hasattr(self, "gate"):
            return
        owned = len(self.running) + len(self.granted)
        assert self.gate.inflight == owned
        assert self.gate.queued == len(self.waiting)
        assert self.gate.admitted == self.ran + len(self.granted)
        refused = sum(self.gate.refused.values())
        assert self.arrived == self.gate.admitted + refused + self.left + len(self.waiting)

    @invariant()
    def nobody_waits_while_there_is_room(self) -> None:
        """And the limit is exceeded only by what ran before it shrank."""
        if not hasattr(self, "gate"):
            return
        self.shrunk_to = min(self.shrunk_to, self.gate.inflight)
        assert 0 <= self.gate.inflight <= max(self.gate.limit, self.shrunk_to)
        if self.waiting:
            assert self.gate.inflight >= self.gate.limit
        assert self.gate.queued <= self.max_queue

    @invariant()
    def each_ticket_ends_once(self) -> None:
        """As the model says, waking its owner exactly once unless the owner left by itself."""
        for ticket, _ in self.waiting:
            assert ticket.waiting
            assert self.wakes[ticket] == 0
        for ticket, _ in self.granted:
            assert ticket.granted
            assert self.wakes[ticket] == 1
        for ticket, state in self.ended:
            assert ticket.state is state
            assert self.wakes[ticket] <= 1

    def teardown(self) -> None:
        """Once everything has ended, all slots are there."""
        if not hasattr(self, "gate"):
            return
        while self.running or self.granted:
            for ticket, _ in self.granted:
                self.gate.abandon(ticket, self.now)
            self.granted.clear()
            self.settle()
            if self.running:
                self.gate.exit(self.running.pop(), self.now)
                self.settle()
        assert (self.gate.inflight, self.gate.queued) == (0, 0)
        for _ in range(self.gate.limit):
            assert self.gate.enter(Request(self.now)) is None
        assert isinstance(self.gate.enter(Request(self.now)), Reply | Ticket)


class AdaptiveMachine(GateMachine):
    """The same with a limit that moves up and down under those who run."""

    law: Whim

    @initialize(limit=st.integers(1, 3), max_queue=st.integers(0, 3))
    def build(self, limit: int, max_queue: int) -> None:
        """Make the gate, and let it listen."""
        self.max_queue = max_queue
        self.law = Whim(limit)
        self.gate = AdaptiveGate(self.law, max_queue=max_queue)
        self.gate.listen(self.sense)
        self.gate.tick(self.now)

    def sense(self, now: float) -> Senses:
        """Be an idle server."""
        return Senses(now, 0.0, int(now))

    def saturated(self) -> bool:
        """As the law says."""
        return self.law.saturated

    @rule(
        limit=st.integers(1, 6), saturated=st.booleans(), patience=st.sampled_from([0.5, 1.5, 9.0])
    )
    def close_a_window(self, limit: int, saturated: bool, patience: float) -> None:
        """A window ends, and the law thinks again: who has waited too long by then, is refused."""
        self.now += 1.0
        self.shrunk_to = max(self.shrunk_to, self.gate.inflight)
        self.law.limit, self.law.saturated = limit, saturated
        self.law.queue_timeout = patience
        inflight, queued = self.gate.inflight, self.gate.queued
        self.gate.tick(self.now)
        assert self.gate.limit == limit
        window = self.law.windows[-1]
        assert (window.now, window.inflight, window.queued) == (self.now, inflight, queued)
        assert window.peak >= inflight
        assert window.arrivals >= window.refused >= 0
        while self.waiting and self.now - self.waiting[0][0].queued_at > patience:
            ticket, _ = self.waiting.pop(0)
            self.ended.append((ticket, TicketState.REFUSED))
        self.settle()


def _test(machine: type[Any]) -> Any:
    case = machine.TestCase
    case.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
    return case


TestGate = _test(GateMachine)
TestAdaptiveGate = _test(AdaptiveMachine)

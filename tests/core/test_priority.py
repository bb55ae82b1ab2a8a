"""The gate with ranks: whom it refuses, and whom it lets wait."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resilience_mw import Backpressure
from resilience_mw.core import AIMD, SKIP, AdaptiveGate, Reply, Senses, Ticket
from resilience_mw.core.cutoff import Cutoff
from resilience_mw.core.hold import Hold
from resilience_mw.core.policy import answers_ahead
from resilience_mw.core.priority import PriorityGate
from resilience_mw.core.ranking import Ranking
from resilience_mw.policies import for_backpressure

from .requests import Request


class Law(AIMD):
    """A law that does as it is told."""

    def __init__(self, limit: int = 2) -> None:
        super().__init__(initial_limit=limit, max_limit=5000, window=0.1)
        self.alert = False
        self.asked: list[tuple[float, int]] = []
        self.answer: str | None = None
        self.over = False

    def update(self, window: Any) -> int:
        """Keep the limit."""
        self.saturated = self.over
        return self.limit

    def refuses(self, waited: float, backlog: int) -> str | None:
        """Answer as told."""
        self.asked.append((waited, backlog))
        return self.answer

    def patience(self, now: float) -> float:
        """Let requests wait for as long as is in order."""
        return 0.1


class Bench:
    """A gate with its law, and requests that name their class by their path."""

    def __init__(self, limit: int = 2, *, user: Any = None, **options: Any) -> None:
        self.law = Law(limit)
        ranking = Ranking(lambda request: request.path.split("/")[1] or None, user)
        self.gate = PriorityGate(self.law, ranking, **options)
        self.depth = 0
        self.busy = 0.0
        self.now = 100.0
        self.gate.listen(lambda now: Senses(now, self.busy, 1), lambda: self.depth)
        self.gate.tick(self.now)

    def request(self, name: str = "normal", waited: float = 0.0) -> Request:
        """Return a request that arrives now."""
        request = Request(self.now, path=f"/{name}")
        request.queue_wait = waited
        return request

    def enter(self, name: str = "normal", waited: float = 0.0) -> Any:
        """Have a request enter now."""
        return self.gate.enter(self.request(name, waited))

    def overload(self, seconds: float = 3.0, waited: float = 0.04) -> None:
        """Let three hundred requests arrive a second, of which a hundred are completed.

        One in ten is critical, two are normal, seven are sheddable. Each has waited a bit less
        than is in order. After a second the law refuses one, and then has nothing to refuse.
        """
        self.law.alert = True
        names = (["critical"] + ["normal"] * 2 + ["sheddable"] * 7) * 3
        running = []
        for window in range(round(seconds / 0.1)):
            for name in names:
                self.now += 0.1 / len(names)
                alarm = window >= 10 and not self.gate.cutoff.active
                self.law.answer = "waited" if alarm else None
                request = self.request(name, waited)
                if self.gate.enter(request) is None:
                    running.append(request)
            for request in running[:10]:
                self.gate.exit(request, self.now)
            del running[:10]
            self.busy += 0.1
        self.law.answer = None


def test_the_plain_gate_is_used_where_nobody_asks_for_ranks():
    """Off by default: the very class, and nothing of ranks is even imported."""
    (gate,) = for_backpressure(Backpressure())
    assert type(gate) is AdaptiveGate
    code = (
        "import sys, resilience_mw; resilience_mw.protect(lambda environ, start_response: [])\n"
        "ours = ('ranking', 'cutoff', 'cohorts', 'hold', 'priority', 'shadow')\n"
        "print([name for name in ours if f'resilience_mw.core.{name}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("options", "cutoff"),
    [
        ({"priority": "X-Priority"}, Cutoff),
        ({"priority": lambda request: None}, Cutoff),
        ({"priority": "X-Priority", "user": lambda request: "anna"}, Hold),
        ({"user": lambda request: "anna"}, Hold),
    ],
)
def test_each_of_the_options_turns_ranks_on(options: dict[str, Any], cutoff: type):
    """A header, a callable, users; together or alone."""
    (gate,) = for_backpressure(Backpressure(**options))
    assert type(gate) is PriorityGate
    assert type(gate.cutoff) is cutoff


def test_calm_requests_are_not_ranked():
    """Neither callable is called while there is no pressure."""
    seen: list[Any] = []
    bench = Bench(10, user=seen.append)
    for _ in range(500):
        bench.now += 0.01
        request = bench.request("x")
        assert bench.gate.enter(request) is None
        bench.gate.exit(request, bench.now)
    assert seen == []
    assert bench.law.asked == []
    snapshot = bench.gate.snapshot()
    assert (snapshot.admitted, snapshot.cutoff, snapshot.priority_errors) == (500, None, 0)


def test_exempt_paths_have_no_rank():
    """They are never refused, whatever their class."""
    bench = Bench(exempt=("/sheddable",))
    bench.overload(waited=1.0)
    before = bench.gate.snapshot()
    request = bench.request("sheddable", 9.0)
    assert bench.gate.enter(request) is SKIP
    assert bench.gate.ahead(request) is None
    assert request.rank is None
    assert bench.gate.snapshot() == before


def test_under_pressure_the_lowest_class_goes_first():
    """With what can be served known, waits say how far up the line is."""
    bench = Bench(5000)
    bench.overload()
    passed = {
        waited: [
            sum(bench.enter(name, waited) is None for _ in range(100))
            for name in ("critical", "normal", "sheddable")
        ]
        for waited in (0.0, 0.05, 0.1, 0.15, 0.25, 9.0)
    }
    expected = {
        0.0: [100, 100, 19],
        0.05: [100, 100, 5],
        0.1: [100, 100, 0],
        0.15: [100, 83, 0],
        0.25: [100, 0, 0],
        9.0: [33, 0, 0],
    }
    for waited, counts in expected.items():
        assert passed[waited] == pytest.approx(counts, abs=8), waited


def test_what_is_refused_by_rank_is_saturated_and_shows_the_line():
    """One of the reasons there are, and a number that tells how far it goes."""
    bench = Bench(5000)
    bench.overload()
    for _ in range(40):
        refusal = bench.enter("sheddable", 0.12)
    assert isinstance(refusal, Reply)
    assert (refusal.status, refusal.reason) == (503, "saturated")
    line = bench.gate.snapshot().cutoff
    assert line is not None
    assert 1.0 < line <= 2.0


def test_the_law_is_asked_about_everybody_under_pressure():
    """It must know of every wait, also of those that are refused by rank, to judge the load."""
    bench = Bench(5000)
    bench.overload(2.0, waited=0.03)
    assert len(bench.law.asked) == 600
    assert {waited for waited, _ in bench.law.asked} == {0.03}
    assert bench.gate.snapshot().waited_p50 == 0.03


def test_one_old_request_is_no_pressure():
    """A server that lets one connection starve has not kept the others waiting."""
    bench = Bench(5000)
    bench.overload()
    assert bench.enter("normal", 0.6) is None
    assert bench.gate.snapshot().cutoff == pytest.approx(1.8, abs=0.2)
    for _ in range(20):
        bench.enter("normal", 0.05)
    assert bench.gate.snapshot().cutoff == pytest.approx(2.0, abs=0.1)


def test_a_refusal_of_the_law_starts_it():
    """From the first refusal on ranks decide, as far as enough is known; before, the law does."""
    bench = Bench(5000)
    bench.law.alert = True
    bench.law.answer = "waited"
    refusal = bench.enter("critical", 9.0)
    assert isinstance(refusal, Reply)
    assert refusal.reason == "waited"
    bench.overload(1.2)
    assert bench.gate.cutoff.active
    bench.law.answer = "waited"
    assert bench.enter("critical", 0.05) is None


def test_connections_that_wait_to_be_accepted_count_as_waits():
    """Sixty of them are a fifth of a second at three hundred a second."""
    bench = Bench(5000)
    bench.overload()
    assert bench.enter("normal", 0.0) is None
    bench.depth = 60
    assert isinstance(bench.enter("normal", 0.0), Reply)


def test_a_full_gate_queues_by_class():
    """In each class first come, first served."""
    bench = Bench(1, max_queue=10)
    holder = bench.request()
    assert bench.gate.enter(holder) is None
    names = ["sheddable", "normal", "critical", "sheddable", "normal", "critical"]
    tickets = [bench.enter(name) for name in names]
    assert bench.gate.queued == 6
    granted = []
    for _ in names:
        bench.gate.exit(holder, bench.now)
        granted += [i for i, ticket in enumerate(tickets) if ticket.granted and i not in granted]
    assert granted == [2, 5, 1, 4, 0, 3]


def test_a_full_queue_gives_up_its_last_for_a_better_one():
    """Not for one of the same class, and never anybody who is better."""
    bench = Bench(1, max_queue=2)
    bench.enter()
    first, second = bench.enter("sheddable"), bench.enter("sheddable")
    woken: list[str] = []
    second.wake = lambda: woken.append("second")
    refused = bench.enter("sheddable")
    assert isinstance(refused, Reply)
    assert refused.reason == "queue_full"
    better = bench.enter("normal")
    assert isinstance(better, Ticket)
    assert woken == ["second"]
    assert second.reply is refused
    assert first.waiting
    best = bench.enter("critical")
    assert isinstance(best, Ticket)
    assert first.reply is refused
    assert isinstance(bench.enter("normal"), Reply)
    assert better.waiting
    assert bench.gate.queued == 2
    assert bench.gate.snapshot().refused == {"queue_full": 4}


def test_nobody_queues_where_there_is_no_queue_or_no_more():
    """Without one, and while draining, a full gate refuses whoever comes."""
    bench = Bench(1, max_queue=0)
    bench.enter()
    refused = bench.enter("critical")
    assert isinstance(refused, Reply)
    assert refused.reason == "limit"
    bench = Bench(1, max_queue=5)
    bench.enter()
    ticket = bench.enter("critical")
    bench.gate.drain()
    assert ticket.reply.reason == "draining"
    refused = bench.enter("critical")
    assert isinstance(refused, Reply)
    assert refused.reason == "draining"


def test_important_requests_may_wait_longer_for_a_slot():
    """Three times as long, but not longer than the option says."""
    for queue_timeout, seconds in ((5.0, [0.3, 0.1, 0.1]), (0.2, [0.2, 0.1, 0.1])):
        bench = Bench(1, queue_timeout=queue_timeout)
        bench.enter()
        tickets = [bench.enter(name) for name in ("critical", "normal", "sheddable")]
        waits = [ticket.expires - ticket.queued_at for ticket in tickets]
        assert waits == pytest.approx(seconds)


def test_under_pressure_those_who_surely_fit_may_wait_longer():
    """Where users are held together, all who are let in."""
    for user, expected in ((None, [0.3, 0.1]), (lambda request: "anna", [0.4, 0.4])):
        bench = Bench(5000, user=user)
        bench.overload()
        bench.law.limit = bench.gate.limit = 0
        # Seventy of the hundred that can be served: critical, and two thirds of the normal ones.
        gate = bench.gate
        waits = [gate._favour(rank) * 0.1 for rank in (1.5, 1.9)]
        assert waits == pytest.approx(expected)


def test_a_request_is_answered_ahead_by_its_rank():
    """Before there is a task for it, and it is not judged twice."""
    bench = Bench(5000)
    assert answers_ahead(bench.gate)
    assert bench.gate.ahead(bench.request("sheddable", 9.0)) is None  # calm: `enter` decides
    bench.overload()
    asked = len(bench.law.asked)
    refused = bench.gate.ahead(bench.request("sheddable", 0.15))
    assert isinstance(refused, Reply)
    assert refused.reason == "saturated"
    assert bench.gate.ahead(bench.request("critical", 0.0)) is None
    assert len(bench.law.asked) == asked + 2
    # It is the same request that comes in now, whatever this one says of itself.
    assert bench.enter("sheddable", 9.0) is None
    assert len(bench.law.asked) == asked + 2
    assert isinstance(bench.enter("sheddable", 9.0), Reply)


def test_a_request_that_passed_ahead_may_find_the_gate_full():
    """It waits by its class like any other, though its rank was told to another exchange."""
    bench = Bench(5000)
    bench.overload()
    bench.gate.limit = 0
    for name in ("critical", "normal"):
        assert bench.gate.ahead(bench.request(name)) is None
    later, sooner = bench.enter("normal"), bench.enter("critical")
    assert list(bench.gate._queue) == [sooner, later]


def test_a_request_that_passed_ahead_and_never_came_is_forgotten():
    """Its client left meanwhile: it vouches for nobody beyond this window."""
    bench = Bench(5000)
    bench.overload()
    for _ in range(5):
        assert bench.gate.ahead(bench.request("critical")) is None
    bench.now += 0.11
    assert isinstance(bench.enter("sheddable", 9.0), Reply)


def test_ahead_ends_windows():
    """Perhaps nobody gets further than that."""
    bench = Bench(5000)
    bench.overload()
    bench.law.over = True
    asked = len(bench.law.asked)
    bench.now += 3.0
    bench.gate.ahead(bench.request("critical"))
    assert bench.law.saturated
    assert len(bench.law.asked) == asked + 1


def test_errors_of_the_callables_show_in_the_snapshot():
    """The requests count as normal."""
    bench = Bench(5000)
    bench.overload()
    for _ in range(7):
        request = bench.request("nonsense")
        assert bench.gate.enter(request) is None
        assert request.rank is not None
        assert 1.0 <= request.rank < 2.0
    assert bench.gate.snapshot().priority_errors == 7


def test_the_pressure_ends():
    """Two seconds later nobody is ranked any more, and the line is gone."""
    bench = Bench(5000)
    bench.overload()
    bench.law.alert = False
    for window in range(20):
        bench.now += 0.1
        request = bench.request("sheddable")
        decision = bench.gate.enter(request)
        if decision is None:
            bench.gate.exit(request, bench.now)
        assert decision is None or window < 5
    assert not bench.gate.cutoff.active
    assert bench.gate.snapshot().cutoff is None
    request = bench.request("sheddable", 9.0)
    assert bench.gate.enter(request) is None
    assert request.rank is None


steps = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["enter", "ahead"]),
            st.sampled_from(["critical", "normal", "sheddable", "", "x"]),
            st.floats(0.0, 5.0),
        ),
        st.tuples(st.sampled_from(["exit", "expire", "abandon"]), st.integers(0, 20)),
        st.tuples(st.just("tick"), st.floats(0.0, 0.5)),
        st.tuples(st.just("law"), st.integers(0, 5), st.booleans(), st.booleans()),
        st.tuples(st.just("drain")),
    ),
    max_size=80,
)


@given(steps, st.booleans(), st.integers(0, 3), st.sampled_from([None, "waited", "saturated"]))
def test_its_books_are_right_whatever_happens(
    moves: list[tuple[Any, ...]], users: bool, max_queue: int, answer: str | None
):
    """Slots are given once, the queue is in order and within bounds, and all comes back."""
    bench = Bench(2, max_queue=max_queue, user=(lambda request: "anna") if users else None)
    gate, law = bench.gate, bench.law
    law.answer = answer
    running: list[Request] = []
    waiting: list[tuple[Request, Ticket]] = []
    for move in moves:
        bench.now += 0.01
        match move:
            case ("enter", name, waited):
                request = bench.request(name, waited)
                decision = gate.enter(request)
                if decision is None:
                    running.append(request)
                elif isinstance(decision, Ticket):
                    waiting.append((request, decision))
            case ("ahead", name, waited):
                assert not isinstance(gate.ahead(bench.request(name, waited)), Ticket)
            case ("exit", number) if running:
                gate.exit(running.pop(number % len(running)), bench.now)
            case ("expire", number) if waiting:
                gate.expire(waiting[number % len(waiting)][1], bench.now + 9.0)
            case ("abandon", number) if waiting:
                gate.abandon(waiting.pop(number % len(waiting))[1], bench.now)
            case ("tick", seconds):
                bench.now += seconds
                bench.busy += seconds / 2
                gate.tick(bench.now)
            case ("law", limit, alert, over):
                law.limit, law.alert, law.over = limit, alert, over
            case ("drain",):
                gate.drain()
        running += [request for request, ticket in waiting if ticket.granted]
        waiting = [(request, ticket) for request, ticket in waiting if ticket.waiting]
        assert gate.inflight == len(running)
        assert gate.queued == len(waiting) <= max_queue
        orders = [ticket.order for ticket in gate._queue]  # type: ignore[attr-defined]
        assert orders == sorted(orders)
    for _, ticket in waiting:
        gate.abandon(ticket, bench.now)
    for request in running:
        gate.exit(request, bench.now)
    assert (gate.inflight, gate.queued) == (0, 0)

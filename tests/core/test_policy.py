"""What every policy is and who may hold it; exchanges, replies and unwinding."""

from __future__ import annotations

import pytest

from resilience_mw import ConfigError
from resilience_mw.core import SKIP, Exchange, Gate, Policy, Reply, Ticket, TicketState
from resilience_mw.core.policy import EVENT_LOOP, THREADS, claim
from resilience_mw.core.unwind import unwind

from .requests import Request


def test_a_policy_is_claimed_by_one_kind_of_driver():
    """One kind locks and the other does not."""
    gate = Gate(1)
    claim([gate], EVENT_LOOP)
    claim([gate], EVENT_LOOP)
    with pytest.raises(ConfigError, match=r"must stay with one kind of driver, got Gate used by"):
        claim([gate], THREADS)
    assert gate.driver == EVENT_LOOP


def test_a_policy_stands_in_a_row_once():
    """It would be left twice for each time it was entered."""
    gate = Gate(1)
    with pytest.raises(ConfigError, match="policies must be distinct, got the same Gate twice"):
        claim([gate, Gate(1), gate], THREADS)
    assert gate.driver is None


def test_a_claim_that_fails_claims_nothing():
    """The policies can still be used elsewhere."""
    taken, free = Gate(1), Gate(1)
    claim([taken], THREADS)
    with pytest.raises(ConfigError):
        claim([free, taken], EVENT_LOOP)
    assert free.driver is None


def test_a_policy_need_only_say_who_enters():
    """Everything else does nothing by default."""
    policy, ticket = Policy(), Ticket(0.0, 1.0)
    with pytest.raises(NotImplementedError):
        policy.enter(Request())
    assert policy.ahead(Request()) is None
    policy.tick(1.0)
    policy.drain()
    assert policy.exit is None
    assert policy.snapshot() is None
    assert (policy.observes, policy.reroutes, policy.driver) == (False, False, None)
    assert ticket.state is TicketState.WAITING


def test_a_reply_is_rendered_for_both_protocols():
    """Text headers in the spelling of HTTP/1, raw ones in lower case, both with the length."""
    reply = Reply(503, "Grüße", (("Retry-After", "7"),), reason="limit")
    assert reply.body == "Grüße".encode()
    assert reply.headers == (
        ("Retry-After", "7"),
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", "7"),
    )
    assert reply.raw_headers[0] == (b"retry-after", b"7")
    assert reply.raw_headers[-1] == (b"content-length", b"7")
    assert repr(reply) == f"Reply(503, {reply.body!r}, reason='limit')"
    assert repr(SKIP) == "SKIP"


def test_an_exchange_has_waited_before_and_since():
    """Never a negative time, whatever the clock that was asked."""
    exchange = Request(100.0)
    assert (exchange.waited(100.5), exchange.waited(99.0)) == (0.5, 0.0)
    exchange.queue_wait = 2.0
    assert (exchange.waited(100.5), exchange.waited(99.0)) == (2.5, 2.0)


@pytest.mark.parametrize(
    ("own", "outer", "deadline"),
    [(None, None, None), (5.0, None, 5.0), (None, 4.0, 4.0), (5.0, 4.0, 4.0), (4.0, 5.0, 4.0)],
)
def test_a_nested_exchange_takes_the_nearer_deadline(
    own: float | None, outer: float | None, deadline: float | None
):
    """A guard further out has promised it."""
    exchange, around = Request(), Request()
    exchange.deadline, around.deadline = own, outer
    exchange.nest(around)
    assert exchange.deadline == deadline
    assert exchange.outer is around


def test_an_exchange_is_forwarded_until_somebody_refuses():
    """Which is what a sample has to know."""
    exchange = Request()
    assert exchange.forwarded
    exchange.refused = "limit"
    assert not exchange.forwarded


def test_unwinding_tells_everyone_even_if_some_fail():
    """In order, and then it raises what they raised."""
    told: list[object] = []

    def tell(name: str) -> None:
        told.append(name)

    def fail(error: BaseException) -> None:
        told.append(error)
        raise error

    first, second = KeyError("first"), SystemExit("second")

    def exits(*steps: object):
        def make(step: object):
            def exit(exchange: Exchange, now: float) -> None:
                assert now == 7.0
                if isinstance(step, BaseException):
                    fail(step)
                tell(str(step))

            return exit

        return [make(step) for step in steps]

    unwind(exits("a", "b"), Request(), 7.0)
    assert told == ["a", "b"]
    told.clear()
    with pytest.raises(KeyError):
        unwind(exits("a", first, "b", "c"), Request(), 7.0)
    assert told == ["a", first, "b", "c"]
    told.clear()
    with pytest.raises(SystemExit) as raised:
        unwind(exits(first, "a", second, "b"), Request(), 7.0)
    assert raised.value.__context__ is first
    assert told == [first, "a", second, "b"]


def test_a_policy_of_ones_own_ends_its_tickets_without_more_code():
    """Out of time is refused; who left, even after a grant, has left."""

    class Queue(Policy):
        def enter(self, exchange):
            return Ticket(0.0, 1.0)

    late, left, granted = Ticket(0.0, 1.0), Ticket(0.0, 1.0), Ticket(0.0, 1.0)
    queue = Queue()
    queue.expire(late, 1.0)
    assert late.reply is not None
    assert late.reply.reason == "queue_timeout"
    queue.abandon(left, 1.0)
    granted.grant()
    queue.abandon(granted, 1.0)
    assert not left.waiting
    assert not granted.granted

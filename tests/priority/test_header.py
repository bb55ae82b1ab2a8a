"""The class of a request from a header: whose word counts, and how it may be spelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from resilience_mw import Backpressure
from resilience_mw.asgi.exchange import ASGIExchange
from resilience_mw.core import Exchange
from resilience_mw.core.priority import PriorityGate
from resilience_mw.policies import for_backpressure
from resilience_mw.wsgi.exchange import WSGIExchange
from tests.asgi.harness import scope

NAME = "X-Request-Class"


def asgi(*values: str, peer: str | None = "192.0.2.7") -> Exchange:
    """Return an ASGI request with the header as often as there are values."""
    exchange = ASGIExchange()
    exchange.scope = scope(
        headers=[(NAME.lower().encode(), value.encode("latin-1")) for value in values],
        client=None if peer is None else (peer, 50000),
    )

    async def send(message: Any) -> None: ...

    exchange.server_send = send
    return exchange


def wsgi(*values: str, peer: str | None = "192.0.2.7") -> Exchange:
    """Return a WSGI request; the server has joined the values."""
    exchange = WSGIExchange()
    exchange.environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/"}
    if peer is not None:
        exchange.environ["REMOTE_ADDR"] = peer
    if values:
        exchange.environ["HTTP_X_REQUEST_CLASS"] = ",".join(values)
    return exchange


Make = Callable[..., Exchange]
BOTH = pytest.mark.parametrize("make", [asgi, wsgi])


def level(exchange: Exchange, *proxies: str, errors: int = 0) -> int:
    """Return the class that a request is given."""
    (gate,) = for_backpressure(Backpressure(priority=NAME, trusted_proxies=proxies))
    assert isinstance(gate, PriorityGate)
    rank = gate.ranking.rank(exchange, 0.0)
    assert gate.snapshot().priority_errors == errors
    return int(rank)


@BOTH
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("critical", 0),
        ("normal", 1),
        ("sheddable", 2),
        ("CRITICAL", 0),
        ("  Sheddable\t", 2),
        ("", 1),
        ("   ", 1),
    ],
)
def test_the_names_in_any_case(make: Make, value: str, expected: int):
    """Blanks around them do not count, and an empty header is none."""
    assert level(make(value)) == expected


@BOTH
def test_without_the_header_a_request_is_normal(make: Make):
    """That is no error."""
    assert level(make()) == 1


@BOTH
@pytest.mark.parametrize("value", ["urgent", "0", "critical;q=1", "crit ical", "\xff", "x" * 10**6])
def test_any_other_word_is_normal_and_counted(make: Make, value: str):
    """However long it is."""
    assert level(make(value), errors=1) == 1


@BOTH
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["critical", "sheddable"], 2),
        (["sheddable", "critical"], 0),
        (["critical, sheddable"], 2),
        (["critical", ""], 1),
        (["nonsense", "Critical"], 0),
    ],
)
def test_of_several_the_last_counts(make: Make, values: list[str], expected: int):
    """It is the nearest proxy's: whatever a client sent stands before it."""
    assert level(make(*values)) == expected


@BOTH
@pytest.mark.parametrize(
    ("peer", "trusted"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("fd00::7", True),
        ("192.0.2.7", False),
        ("fe80::1", False),
        ("not an address", False),
        (None, False),
    ],
)
def test_only_trusted_proxies_are_believed(make: Make, peer: str | None, trusted: bool):
    """From anybody else a claim is ignored, and its request is like any other."""
    proxies = ("10.0.0.0/8", "fd00::/8")
    assert level(make("critical", peer=peer), *proxies) == (0 if trusted else 1)
    assert level(make("sheddable", peer=peer), *proxies) == (2 if trusted else 1)


@BOTH
@pytest.mark.parametrize("proxies", [(), ("*",)])
@pytest.mark.parametrize("peer", ["10.1.2.3", "192.0.2.7", "not an address", None])
def test_without_proxies_the_header_counts_from_anybody(
    make: Make, proxies: tuple[str, ...], peer: str | None
):
    """Whoever names a header, but no proxies, says that something sets or strips it."""
    assert level(make("critical", peer=peer), *proxies) == 0


@BOTH
def test_a_unix_socket_is_trusted_by_its_name(make: Make):
    """There is no address to trust."""
    assert level(make("critical", peer=None), "unix") == 0
    assert level(make("critical", peer=None), "10.0.0.0/8") == 1


def test_a_callable_is_asked_whoever_is_connected():
    """What it believes is its own business."""
    (gate,) = for_backpressure(
        Backpressure(priority=lambda request: "critical", trusted_proxies=("10.0.0.0/8",))
    )
    assert isinstance(gate, PriorityGate)
    assert gate.ranking.rank(asgi(), 0.0) < 1.0


def test_with_users_alone_everybody_is_normal():
    """Places differ, classes do not."""
    (gate,) = for_backpressure(Backpressure(user=lambda request: request.peer))
    assert isinstance(gate, PriorityGate)
    ranks = {gate.ranking.rank(asgi(peer=f"192.0.2.{last}"), 0.0) for last in range(200)}
    assert {int(rank) for rank in ranks} == {1}
    assert len(ranks) > 50

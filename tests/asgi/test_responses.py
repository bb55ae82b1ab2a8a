"""Responses and answers, message by message."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from resilience_mw.asgi import Guard
from resilience_mw.core import AIMD, AdaptiveGate, DeadlinePolicy, Gate, Policy, Reply

from .harness import Exchange, Holding, Message, call, hello, run, scope, until

START = {"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"b")]}

RESPONSES: dict[str, list[Message]] = {
    "chunks": [
        START,
        {"type": "http.response.body", "body": b"a", "more_body": True},
        {"type": "http.response.body", "body": b"b"},
    ],
    "trailers": [
        {**START, "trailers": True},
        {"type": "http.response.body", "body": b"a", "more_body": False},
        {"type": "http.response.trailers", "headers": [(b"x-t", b"1")], "more_trailers": True},
        {"type": "http.response.trailers", "headers": [(b"x-u", b"2")]},
    ],
    "pathsend": [START, {"type": "http.response.pathsend", "path": "/etc/hostname"}],
    "zero copy": [START, {"type": "http.response.zerocopysend", "file": 7, "count": 9}],
    "early hints": [
        {"type": "http.response.early_hint", "links": [b"</a>; rel=preload"]},
        {"type": "http.response.push", "path": "/b", "headers": []},
        START,
        {"type": "http.response.body"},
    ],
}


def policies(kind: str) -> tuple[list[Policy], Gate]:
    """Return a row that observes responses, or one that does not; and its innermost gate."""
    gate = Gate(1)
    return ([gate] if kind == "plain" else [DeadlinePolicy(), AdaptiveGate(AIMD()), gate]), gate


@pytest.mark.parametrize("kind", ["plain", "live"])
@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_every_kind_of_response_passes_and_holds_the_slot_to_its_end(name, kind, loop):
    """Message by message, unchanged; the slot is held until the app has returned."""
    row, gate = policies(kind)

    async def app(scope, receive, send):
        for message in RESPONSES[name]:
            await send(message)
            assert gate.inflight == 1

    async def main():
        guard = Guard(app, *row)
        exchange = await call(guard)
        assert exchange.sent == RESPONSES[name]
        assert gate.inflight == 0
        guard.close()

    run(main(), loop)


@pytest.mark.parametrize("kind", ["plain", "live"])
def test_work_after_the_last_message_holds_the_slot(kind):
    """Background tasks run inside the same call."""
    row, gate = policies(kind)

    async def main():
        go = asyncio.Event()

        async def app(scope, receive, send):
            await hello(scope, receive, send)
            await go.wait()

        guard = Guard(app, *row)
        exchange = Exchange()
        task = exchange.start(guard)
        await until(lambda: exchange.text)
        assert gate.inflight == 1
        go.set()
        await task
        assert gate.inflight == 0
        guard.close()

    run(main())


@pytest.mark.parametrize(("version", "closes"), [("1.0", True), ("1.1", True), ("2", False)])
def test_only_http_1_is_asked_to_close_the_connection(version, closes):
    """HTTP/2 forbids the header."""

    class Close(Policy):
        def enter(self, exchange):
            return Reply(408, "x", close=True)

    exchange = run(call(Guard(hello, Close()), http_version=version))
    assert (exchange.headers.get(b"connection") == b"close") is closes


def test_middlewares_further_out_may_change_an_answers_headers():
    """Each answer has a list of its own, though the reply is shared."""

    async def main():
        guard = Guard(hello, Gate(0))

        async def stamp(scope, receive, send):
            async def stamped(message):
                if message["type"] == "http.response.start":
                    message["headers"].append((b"x-stamp", b"1"))
                await send(message)

            await guard(scope, receive, stamped)

        for _ in range(3):
            exchange = await call(stamp)
            assert exchange.headers[b"x-stamp"] == b"1"
            assert exchange.headers[b"content-length"] == b"12"

    run(main())


@pytest.mark.parametrize("kind", ["plain", "live"])
def test_an_answer_that_cannot_be_sent_leaks_nothing(kind):
    """The client has left before the refusal was out."""
    row, gate = policies(kind)

    async def main():
        holding = Holding()
        guard = Guard(holding, *row)
        first = Exchange().start(guard)
        await until(lambda: holding.entered)

        async def broken(message: Any) -> None:
            raise OSError("closed")

        exchange = Exchange()
        with pytest.raises(OSError, match="closed"):
            await guard(exchange.scope, exchange.receive, broken)
        holding.go.set()
        await first
        assert gate.inflight == 0
        assert gate.refused == {"limit": 1}
        guard.close()

    run(main())


def test_a_head_refusal_has_the_length_but_not_the_body():
    """As for GET, minus the body."""
    exchange = run(call(Guard(hello, Gate(0)), method="HEAD"))
    assert (exchange.status, exchange.text) == (503, b"")
    assert exchange.headers[b"content-length"] == b"12"


HOSTILE = [
    [(b"x-request-timeout", value)]
    for value in (b"", b"\xff\xfe\x00", b"9" * 100_000, b"nan", b"-1", b"1e308", "½".encode(), b",")
] + [
    [(b"x-request-timeout", b"1"), (b"x-request-timeout", b"2")],
    [(b"x-request-timeout", b"1")] * 1000,
    [(b"\xff\x00", b"\xff")] * 100,
    [(b"", b"")],
    [(b"x-request-start", b"t=\xff\xff"), (b"x-queue-start", b"9" * 10_000)],
]


@pytest.mark.parametrize("headers", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_headers_never_raise(headers):
    """Huge, empty, duplicated, not ASCII, not a number: the request is served."""

    async def main():
        deadline = DeadlinePolicy(5.0, header="X-Request-Timeout")
        guard = Guard(hello, deadline, AdaptiveGate(AIMD(), exempt=("/static/",)))
        assert (await call(guard, headers=headers)).status == 200
        timeouts = any(name.lower() == b"x-request-timeout" for name, _ in headers)
        assert deadline.ignored_headers == timeouts
        guard.close()

    run(main())


@pytest.mark.parametrize(
    ("path", "root", "exempt"),
    [
        ("/static/a", "", True),
        ("/static/a", "/app", True),
        ("/a", "/static", False),
        ("/\ud800\udcff", "", False),
        ("", "", False),
        ("/static", "", False),
        ("/static/../secret", "", True),
    ],
)
def test_odd_paths_are_judged_below_the_root_path(path, root, exempt):
    """Servers put the root path before the path; the app's own part decides."""
    guard = Guard(hello, Gate(0, exempt=("/static/",)))
    assert run(call(guard, path, root=root)).status == (200 if exempt else 503)


def test_a_path_that_the_server_gave_without_its_root_is_taken_as_it_is():
    """Older servers leave the root path out, and a root that is a mere prefix is none."""
    guard = Guard(hello, Gate(0, exempt=("/static/",)))
    for path, root in (("/static/a", "/app"), ("/static/a", "/stat")):
        request = Exchange(scope(path))
        request.scope["root_path"] = root
        assert run(request.through(guard)).status == 200

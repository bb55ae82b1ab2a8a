"""What the snapshot says of both stacks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from resilience_mw import RolloutRule
from resilience_mw.core.rollout.meter import Meter
from resilience_mw.core.rollout.snapshot import VariantSnapshot
from tests.asgi import harness as asgi_harness
from tests.wsgi import harness as wsgi_harness

from .drivers import ASGI, DRIVERS, WSGI, rule_of

RULES = [RolloutRule("r", path="/a", percent=100)]


def new_only(driver: Any, new: Any, **options: Any) -> Any:
    """All requests to ``new``."""
    return driver.Middleware(driver.app("old"), new=new, rules=RULES, **options)


def counts(app: Any) -> tuple[int, int, int, int]:
    """Requests, errors, refusals and late answers of the new stack."""
    new: VariantSnapshot = rule_of(app).new
    return new.requests, new.errors, new.refusals, new.late


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, [], (1, 0, 0, 0)),
        (404, [], (1, 0, 0, 0)),
        (500, [], (1, 1, 0, 0)),
        (502, [], (1, 1, 0, 0)),
        (503, [], (1, 1, 0, 0)),
        (503, [("Retry-After", "1")], (1, 0, 1, 0)),
        (500, [("Retry-After", "1")], (1, 1, 0, 0)),
        (429, [], (1, 0, 1, 0)),
    ],
)
def test_errors_and_refusals(driver: Any, status: int, headers: Any, expected: Any):
    """A refusal asks to come later, and is no error."""
    app = new_only(driver, driver.app("new", status, headers))
    assert driver.get(app, "/a").status == status
    assert counts(app) == expected
    assert rule_of(app).old == Meter(False).snapshot()


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_exception_is_an_error_and_goes_on_its_way(driver: Any):
    """The server hears of it as it would without us."""
    app = new_only(driver, driver.app("new", fails=LookupError("x")))
    with pytest.raises(LookupError):
        driver.get(app, "/a")
    assert counts(app) == (1, 1, 0, 0)


@pytest.mark.parametrize("driver", DRIVERS)
def test_latencies_are_quantiles_of_the_last_requests(driver: Any):
    """In seconds, and none without requests."""
    app = new_only(driver, driver.app("new"))
    assert (rule_of(app).new.p50, rule_of(app).new.p95) == (None, None)
    for _ in range(5):
        driver.get(app, "/a")
    new = rule_of(app).new
    assert 0 < new.p50 <= new.p95 < 10


def test_quantiles_forget():
    """The last thousand count, refusals do not."""
    meter = Meter(True)
    for seconds in (9.0,) * 500 + (1.0,) * 900 + (2.0,) * 100:
        meter.answered(200, 0.0, seconds, False, False)
    meter.answered(503, 0.0, 99.0, False, True)
    found = meter.snapshot()
    assert (found.p50, found.p95, found.refusals, found.requests) == (1.0, 2.0, 1, 1501)


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_guard_outside_has_it_all(driver: Any):
    """Two stacks and their rule are among the policies of the guard's snapshot."""
    app = new_only(driver, driver.app("new"), server_name="web-7")
    driver.get(app, "/a")
    (found,) = app.snapshot().policies
    assert (found.server_name, found.synced, found.rules[0].by) == ("web-7", True, "server")
    app.drain()
    app.close()
    assert driver.get(app, "/a").text == "new"


def test_an_asgi_response_that_breaks_is_an_error():
    """Though it began well; a client that leaves breaks nothing."""

    def breaking(error: BaseException) -> Any:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            raise error

        return app

    for error, errors in ((ValueError(), 1), (OSError(), 0)):
        app = new_only(ASGI, breaking(error))
        with pytest.raises(type(error)):
            ASGI.get(app, "/a")
        assert counts(app) == (1, errors, 0, 0)


def test_an_asgi_client_that_leaves_is_no_error():
    """The app returns without an answer, or is cancelled."""

    async def listening(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    app = new_only(ASGI, listening)

    async def main() -> None:
        exchange = asgi_harness.Exchange(asgi_harness.scope("/a"))
        exchange.gone.set()
        await exchange.through(app)
        task = asgi_harness.Exchange(asgi_harness.scope("/a")).start(app)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asgi_harness.run(main())
    assert counts(app) == (2, 0, 0, 0)


def test_asgi_messages_pass_as_they_are():
    """Streams, trailers and files; a message is not copied unless a header is added."""
    sent = [
        {"type": "http.response.debug", "info": {}},
        {"type": "http.response.start", "status": 200, "headers": [], "trailers": True},
        {"type": "http.response.body", "body": b"a", "more_body": True},
        {"type": "http.response.body", "body": b"b"},
        {"type": "http.response.trailers", "headers": []},
    ]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in sent:
            await send(message)

    answer = asgi_harness.run(asgi_harness.call(new_only(ASGI, app), "/a"))
    assert all(a is b for a, b in zip(answer.sent, sent, strict=True))


def test_wsgi_bodies_pass_as_they_are():
    """Lists, files and ``exc_info`` reach the server as without us."""

    class Wrapper(list[bytes]):
        pass

    body: Any = [b"a", b"b"]

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        start_response("500 Oh", [], ("an", "exc", "info"))
        return body

    middle = new_only(WSGI, app)
    for body in ([b"a"], (b"a",), Wrapper([b"a"])):
        answer = wsgi_harness.begin(middle, "/a", **{"wsgi.file_wrapper": Wrapper})
        assert answer.body is body
        assert answer.starts[1] == ("500 Oh", [], ("an", "exc", "info"))
    # It changed its mind each time.
    assert counts(middle) == (3, 3, 0, 0)


class Stream:
    """A body that is no list."""

    def __init__(self, chunks: Any, size: int | None = None) -> None:
        self.chunks = iter(chunks)
        self.closed = 0

    def __iter__(self) -> Any:
        return self.chunks

    def close(self) -> None:
        """Count."""
        self.closed += 1


def test_a_wsgi_generator_begins_when_it_is_read():
    """Its status counts then; its failure too, before the start or after."""

    def app(environ: Any, start_response: Any) -> Any:
        if environ["QUERY_STRING"] == "early":
            raise ValueError
        start_response("200 OK", [])
        yield b"a"
        if environ["QUERY_STRING"] == "late":
            raise ValueError

    middle = new_only(WSGI, app)
    assert wsgi_harness.call(middle, "/a") == (200, b"a")
    assert counts(middle) == (1, 0, 0, 0)
    for number, when in enumerate(("early", "late"), 1):
        with pytest.raises(ValueError):  # noqa: PT011 - the app's own
            wsgi_harness.call(middle, "/a", QUERY_STRING=when)
        assert counts(middle) == (1 + number, number, 0, 0)


def test_a_wsgi_body_is_closed_and_its_length_kept():
    """Once, by the server; one that is never read is a client that left."""
    streams = [Stream([b"a"]), Stream([b"b"])]

    def app(environ: Any, start_response: Any) -> Any:
        stream = streams[environ["QUERY_STRING"] == "2"]
        if environ["QUERY_STRING"] != "2":
            start_response("200 OK", [])
        return stream

    middle = new_only(WSGI, app)
    assert wsgi_harness.call(middle, "/a") == (200, b"a")
    answer = wsgi_harness.begin(middle, "/a", QUERY_STRING="2")
    answer.body.close()
    assert [stream.closed for stream in streams] == [1, 1]
    assert counts(middle) == (2, 0, 0, 0)

    class Sized(Stream):
        def __len__(self) -> int:
            return 1

    streams[0] = Sized([b"c"])
    assert len(wsgi_harness.begin(middle, "/a").body) == 1

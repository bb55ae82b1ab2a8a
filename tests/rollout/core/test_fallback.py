"""A request that the new stack does not begin to answer, and the old one."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from resilience_mw import RolloutRule
from resilience_mw.core.exchange import Reply
from resilience_mw.rollout.proxy import UpstreamUnreachable
from tests.asgi.harness import Exchange, run, scope
from tests.wsgi import harness as wsgi_harness

from .drivers import ASGI, DRIVERS, WSGI, rule_of

RULES = [RolloutRule("r", path="/a", percent=100)]


UNREACHABLE = UpstreamUnreachable(Reply(502, "Bad Gateway"), "nobody there")


def falling(driver: Any, new: Any, **options: Any) -> Any:
    """All requests to ``new``, and back if need be."""
    old = driver.app("old")
    return driver.Middleware(old, new=new, rules=RULES, fallback=True, **options)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_a_safe_request_goes_to_the_old_stack(driver: Any, method: str):
    """Once, and the header says which stack answered."""
    app = falling(driver, driver.app("new", fails=LookupError("x")), variant_header="X-Stack")
    answer = driver.get(app, "/a", method=method)
    assert (answer.status, answer.headers["x-stack"]) == (200, "old")
    new = rule_of(app).new
    assert (new.requests, new.errors, new.fallbacks) == (1, 1, 1)
    assert rule_of(app).old.requests == 0


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "get", "PROPFIND"])
def test_no_other_request_is_sent_twice(driver: Any, method: str):
    """The new stack may have done what it was asked for."""
    app = falling(driver, driver.app("new", fails=LookupError("x")))
    with pytest.raises(LookupError):
        driver.get(app, "/a", method=method)
    assert rule_of(app).new.fallbacks == 0


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("status", [200, 500, 502, 503])
def test_an_answer_is_an_answer(driver: Any, status: int):
    """Whatever it says, the new stack has begun."""
    app = falling(driver, driver.app("new", status))
    assert driver.get(app, "/a").status == status
    assert rule_of(app).new.fallbacks == 0


@pytest.mark.parametrize("driver", DRIVERS)
def test_it_is_off_unless_asked_for(driver: Any):
    """An exception is the server's business."""
    new = driver.app("new", fails=LookupError("x"))
    app = driver.Middleware(driver.app("old"), new=new, rules=RULES)
    with pytest.raises(LookupError):
        driver.get(app, "/a")


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_old_stacks_failure_is_its_own(driver: Any):
    """Nobody is asked a third time."""
    old = driver.app("old", fails=KeyError("old"))
    new = driver.app("new", fails=LookupError("new"))
    app = driver.Middleware(old, new=new, rules=RULES, fallback=True)
    with pytest.raises(KeyError):
        driver.get(app, "/a")


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_nobody_sees_is_logged_now_and_then(driver: Any, caplog: pytest.LogCaptureFixture):
    """The exception with its traceback, one line for many."""
    app = falling(driver, driver.app("new", fails=LookupError("the cause")))
    with caplog.at_level(logging.WARNING, "resilience_mw"):
        for _ in range(5):
            driver.get(app, "/a")
    (record,) = caplog.records
    assert record.getMessage() == (
        "rollout rule r: the new stack did not begin to answer, the old one does: "
        "LookupError('the cause')"
    )
    assert record.exc_info is not None


def test_an_asgi_request_is_read_again():
    """The old app gets the same empty body, and then waits for the client as ever."""
    seen = []

    async def new(scope: Any, receive: Any, send: Any) -> None:
        scope["path"] = scope["left behind"] = "x"
        seen.append(await receive())
        raise LookupError

    async def old(scope: Any, receive: Any, send: Any) -> None:
        assert "left behind" not in scope
        seen.append(await receive())
        await ASGI.app("old")(scope, receive, send)

    app = ASGI.Middleware(old, new=new, rules=RULES, fallback=True)

    async def main() -> bytes:
        exchange = Exchange(scope("/a"))
        exchange.gone.set()
        return (await exchange.through(app)).text

    assert run(main()) == b"old"
    assert seen == [{"type": "http.request", "body": b"", "more_body": False}] * 2


@pytest.mark.parametrize(
    "messages",
    [
        [{"type": "http.request", "body": b"x", "more_body": False}],
        [{"type": "http.request", "body": b"", "more_body": True}],
        [{"type": "http.disconnect"}],
    ],
    ids=["body", "more", "gone"],
)
def test_an_asgi_request_that_cannot_be_read_again(messages: Any):
    """A body that the new app has read is gone, and so is a client that left."""

    async def new(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        raise LookupError

    app = falling(ASGI, new)

    async def main() -> None:
        await Exchange(scope("/a"), body=messages).through(app)

    with pytest.raises(LookupError):
        run(main())
    assert rule_of(app).new.fallbacks == 0


def test_an_asgi_app_that_answers_nothing():
    """Falls back while its client waits, and not after it has left."""

    async def silent(scope: Any, receive: Any, send: Any) -> None:
        await receive()

    app = falling(ASGI, silent)
    assert ASGI.get(app, "/a").text == "old"

    async def main() -> int | None:
        return (await Exchange(scope("/a"), body=[{"type": "http.disconnect"}]).through(app)).status

    assert run(main()) is None
    assert (rule_of(app).new.requests, rule_of(app).new.fallbacks) == (2, 1)


def test_a_wsgi_generator_falls_back_at_its_first_chunk():
    """Before it has started a response nothing is lost; after that it is too late."""
    closed = []

    def app(environ: Any, start_response: Any) -> Any:
        try:
            if environ["QUERY_STRING"] == "early":
                raise LookupError
            start_response("200 OK", [])
            yield b"new"
            if environ["QUERY_STRING"] == "late":
                raise LookupError
            yield b"!"
        finally:
            closed.append(environ["QUERY_STRING"])

    middle = falling(WSGI, app)
    assert wsgi_harness.call(middle, "/a", QUERY_STRING="early") == (200, b"old")
    assert wsgi_harness.call(middle, "/a", QUERY_STRING="never") == (200, b"new!")
    with pytest.raises(LookupError):
        wsgi_harness.call(middle, "/a", QUERY_STRING="late")
    assert closed == ["early", "never", "late"]
    assert rule_of(middle).new.errors == 2


def test_a_wsgi_app_that_answers_nothing():
    """An empty body without a start is no answer, and is closed."""
    closed = []

    class Empty(list[bytes]):
        def close(self) -> None:
            closed.append(1)

    middle = falling(WSGI, lambda environ, start_response: Empty())
    assert wsgi_harness.call(middle, "/a") == (200, b"old")
    assert closed == [1]


@pytest.mark.parametrize("facts", [{"CONTENT_LENGTH": "3"}, {"HTTP_TRANSFER_ENCODING": "chunked"}])
def test_a_wsgi_request_with_a_body(facts: Any):
    """May have been read already."""
    middle = falling(WSGI, WSGI.app("new", fails=LookupError()))
    with pytest.raises(LookupError):
        wsgi_harness.call(middle, "/a", **facts)
    assert wsgi_harness.call(middle, "/a", CONTENT_LENGTH="0") == (200, b"old")


def test_a_proxys_word_is_the_answer_where_nobody_else_is_asked():
    """An upstream that is away is 502, not the server's 500."""

    async def new(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        raise UNREACHABLE

    async def main() -> int | None:
        body = [{"type": "http.request", "body": b"x", "more_body": False}]
        return (await Exchange(scope("/a"), body=body).through(falling(ASGI, new))).status

    assert run(main()) == 502
    middle = falling(WSGI, WSGI.app("new", fails=UNREACHABLE))
    assert wsgi_harness.call(middle, "/a", CONTENT_LENGTH="3") == (502, b"Bad Gateway")


def test_an_asgi_app_that_went_on_sends_nothing_any_more():
    """What it left running must not begin a second response."""
    going_on: list[asyncio.Task[None]] = []

    async def new(scope: Any, receive: Any, send: Any) -> None:
        async def late() -> None:
            await done.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"new"})

        going_on.append(asyncio.create_task(late()))
        raise TimeoutError

    app = falling(ASGI, new)

    async def main() -> Exchange:
        exchange = await Exchange(scope("/a")).through(app)
        done.set()
        await going_on[0]
        return exchange

    done = asyncio.Event()
    exchange = run(main())
    assert (exchange.status, exchange.text) == (200, b"old")


def test_a_wsgi_app_that_went_on_sends_nothing_any_more():
    """The same, and a body that cannot even be closed is no hindrance."""
    starts: list[Any] = []

    class Nothing:
        def __iter__(self) -> Any:
            return iter(())

        def close(self) -> None:
            raise OSError

    def new(environ: Any, start_response: Any) -> Any:
        starts.append(start_response)
        return Nothing()

    app = falling(WSGI, new)
    response = wsgi_harness.begin(app, "/a")
    starts[0]("200 OK", [])(b"new")
    assert response.read() == b"old"
    assert [start[0] for start in response.starts] == ["200 Whatever"]

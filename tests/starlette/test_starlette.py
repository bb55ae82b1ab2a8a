"""Our middlewares in real Starlette and FastAPI apps, and the helpers for them."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import BackgroundTasks, Depends, FastAPI, Request, WebSocket
from fastapi.responses import PlainTextResponse, StreamingResponse
from fastapi.testclient import TestClient
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Mount, Route

import resilience_mw
from resilience_mw import Backpressure, Config, ConfigError, Deadline, Limit, protect
from resilience_mw.asgi import (
    BackpressureMiddleware,
    ConcurrencyLimitMiddleware,
    DeadlineMiddleware,
    HealthMiddleware,
)
from resilience_mw.core import GateSnapshot
from resilience_mw.starlette import remaining, snapshot


class Held:
    """A FastAPI app whose endpoints tests hold in place, and what they noted."""

    def __init__(self) -> None:
        self.app = FastAPI()
        self.seen: list[Any] = []
        self.go_on = threading.Event()
        self.entered = threading.Event()
        self.released = asyncio.Event()
        app = self.app

        @app.get("/")
        async def index() -> str:
            return "index"

        @app.get("/thread")
        def thread() -> str:
            self.entered.set()
            self.go_on.wait(20)
            self.seen.append("thread ended")
            return "thread"

        @app.get("/coroutine")
        async def coroutine() -> str:
            self.entered.set()
            await self.released.wait()
            return "coroutine"

        @app.get("/stream")
        async def stream(request: Request) -> StreamingResponse:
            async def chunks():
                for _ in range(2):
                    yield f"{snapshot(request.app).inflight}\n"

            return StreamingResponse(chunks())

        @app.get("/background")
        async def background(request: Request, tasks: BackgroundTasks) -> str:
            tasks.add_task(lambda: self.seen.append(snapshot(request.app).inflight))
            return "later"

        @app.get("/fail")
        async def fail() -> str:
            raise RuntimeError("the endpoint failed")

        @app.get("/left")
        async def left(seconds: Annotated[float | None, Depends(remaining)]) -> float | None:
            return seconds

        @app.get("/left-in-thread")
        def left_in_thread() -> float | None:
            return resilience_mw.remaining()

        @app.get("/load")
        async def load(request: Request) -> dict[str, Any]:
            state = snapshot(request.app)
            return {"inflight": state.inflight, "limit": state.limit}

        @app.websocket("/ws")
        async def ws(websocket: WebSocket) -> None:
            await websocket.accept()
            state = snapshot(websocket.app)
            await websocket.send_json([state.websockets, state.inflight])
            await websocket.close()


@pytest.fixture
def held():
    app = Held()
    yield app
    app.go_on.set()


def client_of(app):
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=app, raise_app_exceptions=False), base_url="http://app"
    )


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def test_middlewares_are_added_like_any_other(held):
    """With their options as keywords; those side by side become one guard."""
    held.app.add_middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=7)
    held.app.add_middleware(HealthMiddleware)
    with TestClient(held.app) as client:
        assert client.get("/livez").text == "ok"
        assert client.get("/readyz").text == "ok"
        assert client.get("/load").json() == {"inflight": 1, "limit": 7}
        state = snapshot(held.app)
        assert (state.inflight, len(state.policies)) == (0, 2)


def test_a_wrong_option_is_named_when_the_app_starts(held):
    """Starlette builds its middlewares then."""
    held.app.add_middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=-1)
    with pytest.raises(ConfigError, match=r"limit\.max_concurrent_requests must be >= 0, got -1"):
        TestClient(held.app).get("/")


def test_the_time_left_in_every_kind_of_endpoint(held):
    """As a dependency, and in an endpoint that runs in the thread pool."""
    held.app.add_middleware(DeadlineMiddleware, timeout=25)
    client = TestClient(held.app)
    assert 0 < client.get("/left").json() <= 25
    assert 0 < client.get("/left-in-thread").json() <= 25


def test_without_a_deadline_no_time_is_left(held):
    """The dependency works in an app without our middlewares."""
    assert TestClient(held.app).get("/left").json() is None


@pytest.mark.parametrize("path", ["/thread", "/coroutine"])
def test_a_full_app_refuses_and_recovers(held, path):
    """503 while both kinds of endpoint hold the only slot, 200 afterwards."""
    held.app.add_middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=1)
    held.app.add_middleware(HealthMiddleware)

    async def test():
        async with client_of(held.app) as client:
            first = asyncio.ensure_future(client.get(path))
            await until(held.entered.is_set)
            refused = await client.get("/")
            assert (refused.status_code, refused.text) == (503, "Service Busy")
            assert refused.headers["retry-after"] == "1"
            assert (await client.get("/livez")).status_code == 200
            held.go_on.set()
            held.released.set()
            assert (await first).status_code == 200
            assert (await client.get("/")).status_code == 200
        assert snapshot(held.app).inflight == 0

    asyncio.run(test())


def test_the_deadline_of_a_thread_keeps_its_slot(held):
    """The client has its 504 while the endpoint's thread works on, and still counts."""
    held.app.add_middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=1)
    held.app.add_middleware(DeadlineMiddleware, timeout=0.1)
    messages: list[Any] = []

    async def test():
        answered = asyncio.Event()

        async def receive():
            await asyncio.sleep(20)

        async def send(message):
            messages.append(message)
            answered.set()

        scope = {"type": "http", "method": "GET", "path": "/thread", "query_string": b""}
        scope |= {"headers": [], "http_version": "1.1", "server": ("app", 80), "scheme": "http"}
        call = asyncio.ensure_future(held.app(scope, receive, send))
        await asyncio.wait_for(answered.wait(), 20)
        assert messages[0]["status"] == 504
        assert snapshot(held.app).inflight == 1
        assert held.seen == []
        held.go_on.set()
        await asyncio.wait_for(call, 20)
        assert held.seen == ["thread ended"]
        assert snapshot(held.app).inflight == 0
        assert len(messages) == 2

    asyncio.run(test())


def test_a_stream_holds_its_slot_until_its_last_byte(held):
    """It counts while it is sent."""
    held.app.add_middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=3)
    assert TestClient(held.app).get("/stream").text == "1\n1\n"
    assert snapshot(held.app).inflight == 0


def test_a_background_task_is_part_of_its_request(held):
    """Its work is load, so the slot is held until it has run."""
    held.app.add_middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=3)
    assert TestClient(held.app).get("/background").status_code == 200
    assert held.seen == [1]
    assert snapshot(held.app).inflight == 0


def test_an_exception_gives_the_slot_back(held):
    """It goes through us to Starlette's own handler of errors."""
    held.app.add_middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=3)
    with pytest.raises(RuntimeError, match="the endpoint failed"):
        TestClient(held.app).get("/fail")
    client = TestClient(held.app, raise_server_exceptions=False)
    assert client.get("/fail").status_code == 500
    assert snapshot(held.app).inflight == 0


def test_a_websocket_holds_no_slot(held):
    """It is counted on its own."""
    held.app.add_middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=1)
    client = TestClient(held.app)
    with client.websocket_connect("/ws") as websocket:
        assert websocket.receive_json() == [1, 0]
    assert snapshot(held.app).websockets == 0


def test_behind_a_root_path_and_in_mounts(held):
    """Probes and exempt paths are below the mount point; a mounted app has a state of its own."""
    inner = Starlette(
        routes=[Route("/", lambda request: PlainTextResponse("inner"))],
        middleware=[
            Middleware(HealthMiddleware, live_path="/inner-livez"),
            Middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=2, exempt=("/static/",)),
        ],
    )
    outer = Starlette(routes=[Mount("/tenant", inner), Mount("/", held.app)])
    # Servers put the root path in front of the path, as the specification asks.
    client = TestClient(outer, root_path="/proxy", base_url="http://app/proxy/")
    assert client.get("tenant/inner-livez").text == "ok"
    assert client.get("tenant/").text == "inner"
    assert client.get("tenant/static/logo").status_code == 404
    assert client.get("inner-livez").status_code == 404
    state = snapshot(inner)
    assert (state.admitted, state.inflight) == (1, 0)
    with pytest.raises(LookupError):
        snapshot(outer)


@pytest.mark.parametrize("outside", [True, False])
def test_beside_a_middleware_of_the_base_class(held, outside):
    """`BaseHTTPMiddleware` runs the app in a task of its own, outside or inside of ours."""

    async def dispatch(request, call_next):
        response = await call_next(request)
        response.headers["X-Seen"] = "yes"
        return response

    if not outside:
        held.app.add_middleware(BaseHTTPMiddleware, dispatch=dispatch)
    held.app.add_middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=3)
    held.app.add_middleware(DeadlineMiddleware, timeout=25)
    if outside:
        held.app.add_middleware(BaseHTTPMiddleware, dispatch=dispatch)
    client = TestClient(held.app, raise_server_exceptions=False)
    response = client.get("/left")
    assert response.headers["X-Seen"] == "yes"
    assert 0 < response.json() <= 25
    assert client.get("/stream").text == "1\n1\n"
    assert client.get("/fail").status_code == 500
    assert client.get("/background").status_code == 200
    assert snapshot(held.app).inflight == 0


def test_guards_apart_have_one_state(held):
    """With another middleware between them, guards are not merged but shown together."""

    async def dispatch(request, call_next):
        return await call_next(request)

    held.app.add_middleware(BackpressureMiddleware, law="aimd", initial_limit=9, max_limit=9)
    held.app.add_middleware(BaseHTTPMiddleware, dispatch=dispatch)
    held.app.add_middleware(ConcurrencyLimitMiddleware, max_concurrent_requests=3)
    client = TestClient(held.app)
    client.get("/")
    state = snapshot(held.app)
    assert [part.limit for part in state.policies if isinstance(part, GateSnapshot)] == [3, 9]
    assert (state.limit, state.inflight, state.admitted) == (9, 0, 1)


def test_protect_around_everything(held):
    """The state is found from the outside in."""
    limits = Config(
        limit=Limit(max_concurrent_requests=4),
        backpressure=Backpressure(enabled=False),
        deadline=Deadline(timeout=25),
    )
    app = protect(held.app, limits)
    with TestClient(app) as client:
        assert client.get("/startupz").text == "ok"
        assert 0 < client.get("/left").json() <= 25
    assert snapshot(app).limit == 4
    with pytest.raises(LookupError, match="no guard, or has not started"):
        snapshot(held.app)


def test_an_app_that_has_not_started_has_no_state(held):
    """Its middlewares do not exist yet."""
    held.app.add_middleware(HealthMiddleware)
    with pytest.raises(LookupError):
        snapshot(held.app)

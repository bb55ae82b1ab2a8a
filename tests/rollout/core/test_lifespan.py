"""Two ASGI apps start and stop as one; websockets go where their handshake does."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from resilience_mw import RolloutRule, protect
from resilience_mw.asgi import RolloutMiddleware
from tests.asgi.harness import run

from .drivers import rule_of

RULES = [
    RolloutRule("r", path="/a", percent=100),
    RolloutRule("socket", path="/socket", percent=100),
]


def stack(name: str, log: list[str], starts: Any = None, stops: Any = None) -> Starlette:
    """An app with a lifespan, whose state has its name in it."""

    @asynccontextmanager
    async def lifespan(app: Any) -> Any:
        log.append(f"{name} starts")
        if starts is not None:
            raise starts
        yield {"database": name, name: True}
        log.append(f"{name} stops")
        if stops is not None:
            raise stops

    async def page(request: Any) -> PlainTextResponse:
        known = ",".join(sorted(request.scope["state"]))
        return PlainTextResponse(f"{name} {request.state.database} {known}")

    async def socket(websocket: Any) -> None:
        await websocket.accept()
        await websocket.send_text(name)
        await websocket.close()

    routes = [
        Route("/{path}", page),
        WebSocketRoute("/socket", socket),
        WebSocketRoute("/other", socket),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


@pytest.mark.parametrize("outside", [lambda app: app, protect], ids=["alone", "protected"])
def test_both_start_and_stop_and_keep_their_state(outside: Any):
    """Each finds its own database; what only one has set is not lost."""
    log: list[str] = []
    app = outside(RolloutMiddleware(stack("old", log), new=stack("new", log), rules=RULES))
    with TestClient(app) as client:
        assert sorted(log) == ["new starts", "old starts"]
        assert client.get("/a").text == "new new database,new,old"
        assert client.get("/b").text == "old old database,old"
    assert sorted(log[2:]) == ["new stops", "old stops"]
    with TestClient(app) as client:  # once more, as tests do
        assert client.get("/a").text.startswith("new new")


@pytest.mark.parametrize("broken", ["old", "new"])
def test_one_that_does_not_start_is_told(broken: str):
    """The server hears which and why, and the other one is stopped again."""
    log: list[str] = []
    stacks = {
        name: stack(name, log, starts=ValueError("no database") if name == broken else None)
        for name in ("old", "new")
    }
    app = RolloutMiddleware(stacks["old"], new=stacks["new"], rules=RULES)
    sent = run(lifespan(app))
    assert [message["type"] for message in sent] == ["lifespan.startup.failed"]
    assert sent[0]["message"].startswith(f"{broken} app: ")
    assert "no database" in sent[0]["message"]
    assert f"{'old' if broken == 'new' else 'new'} stops" in log


def test_one_that_does_not_stop_is_told():
    """Like a failure of the start."""
    app = RolloutMiddleware(
        stack("old", []), new=stack("new", [], stops=ValueError("busy")), rules=RULES
    )
    sent = run(lifespan(app))
    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.failed",
    ]
    assert "new app: " in sent[1]["message"]
    assert "busy" in sent[1]["message"]


async def ignorant(scope: Any, receive: Any, send: Any) -> None:
    """Knows HTTP only."""
    assert scope["type"] == "http"


async def lingering(scope: Any, receive: Any, send: Any) -> None:
    """Says that it has stopped, and does not."""
    for kind in ("startup", "shutdown"):
        assert (await receive())["type"] == f"lifespan.{kind}"
        await send({"type": f"lifespan.{kind}.complete"})
    await asyncio.Event().wait()


async def dying(scope: Any, receive: Any, send: Any) -> None:
    """Starts, and dies."""
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await asyncio.sleep(0.05)
    raise ValueError("dead")


@pytest.mark.parametrize(
    ("new", "end"), [(ignorant, "complete"), (lingering, "complete"), (dying, "failed")]
)
def test_apps_of_all_manners(new: Any, end: str, monkeypatch: pytest.MonkeyPatch):
    """One without a lifespan takes no part, one that lingers is ended, one that dies is told."""
    monkeypatch.setattr("resilience_mw.asgi.lifespans.LAST_WORDS", 0.05)
    sent = run(lifespan(RolloutMiddleware(stack("old", []), new=new, rules=RULES)))
    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        f"lifespan.shutdown.{end}",
    ]


async def lifespan(app: Any) -> list[dict[str, Any]]:
    """Start and stop ``app`` as a server does; return what it says."""
    sent: list[dict[str, Any]] = []
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    messages.put_nowait({"type": "lifespan.startup"})

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "lifespan.startup.complete":
            messages.put_nowait({"type": "lifespan.shutdown"})

    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, messages.get, send)
    return sent


def test_websockets_follow_the_rules():
    """One that a rule is about goes to the new app, and is counted while it is open."""
    app = RolloutMiddleware(stack("old", []), new=stack("new", []), rules=RULES)
    with TestClient(app) as client:
        for path, name in (("/socket", "new"), ("/other", "old")):
            with client.websocket_connect(path) as websocket:
                assert websocket.receive_text() == name
    assert app.snapshot().websockets == 0
    assert rule_of(app, 1).new.requests == 0


def test_a_websocket_does_not_pass_a_proxy():
    """It is refused in so many words, rather than left hanging."""
    app = RolloutMiddleware(stack("old", []), new="http://127.0.0.1:9", rules=RULES)
    with TestClient(app) as client:
        with pytest.raises(WebSocketDisconnect), client.websocket_connect("/socket"):
            pass
        with client.websocket_connect("/other") as websocket:
            assert websocket.receive_text() == "old"

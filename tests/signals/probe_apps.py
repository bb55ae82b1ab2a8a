"""Apps that servers in the tests run: they report how long a request has waited, and by what."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from resilience_mw.signals.loop import LoopMeter, attach
from resilience_mw.signals.proxies import TrustedProxies
from resilience_mw.signals.tcp import accept_queue, listening_sockets
from resilience_mw.signals.threads import pool_size
from resilience_mw.signals.waited import ARRIVED, WaitedASGI, WaitedWSGI, choose_asgi, choose_wsgi
from resilience_mw.types import ASGIApp, Environ, Receive, Scope, Send, StartResponse

PROXIES = TrustedProxies(os.environ.get("PROBE_PROXIES", "").split())


class Probe:
    """ASGI middleware that answers `/probe` itself, and passes everything else on."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.meter: LoopMeter | None = None
        self.waited: WaitedASGI | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        now = time.monotonic()
        if self.meter is None:
            self.meter = attach()
        if self.waited is None:
            self.waited = choose_asgi(scope, send, meter=self.meter, proxies=PROXIES)
        waited = self.waited(scope, send, now)
        if scope["path"] != "/probe":
            await self.app(scope, receive, send)
            return
        body = json.dumps(
            {
                "source": self.waited.source,
                "waited": waited,
                "meter": self.meter.source,
                "listeners": [accept_queue(listener) for listener in listening_sockets()],
            }
        ).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _block(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    time.sleep(0.3)  # noqa: ASYNC251 - blocking the loop is the point
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


bare = Probe(_block)
"""The probe as the outermost ASGI app."""


async def stamped(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve `bare` as a server would whose protocol notes the arrival (here: 1.5 s ago)."""
    scope[ARRIVED] = time.monotonic() - 1.5
    await bare(scope, receive, send)


async def _view(request: Request) -> PlainTextResponse:
    time.sleep(0.3)  # noqa: ASYNC251
    return PlainTextResponse("ok")


starlette = Starlette(
    routes=[Route("/block", _view)],
    middleware=[Middleware(CORSMiddleware, allow_origins=["*"]), Middleware(Probe)],
)
"""The probe added like any Starlette middleware: inside two wrappers of `send`."""


class WSGIProbe:
    """WSGI app that sleeps on `/block` and reports on `/probe`."""

    def __init__(self) -> None:
        self.waited: WaitedWSGI | None = None

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        now = time.monotonic()
        if self.waited is None:
            self.waited = choose_wsgi(environ, proxies=PROXIES)
        waited = self.waited(environ, now)
        report: dict[str, Any] = {
            "source": self.waited.source,
            "waited": waited,
            "pool_size": pool_size(environ),
            "listeners": [accept_queue(listener) for listener in listening_sockets()],
        }
        if environ["PATH_INFO"] == "/block":
            time.sleep(0.3)
        body = json.dumps(report).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]


wsgi = WSGIProbe()

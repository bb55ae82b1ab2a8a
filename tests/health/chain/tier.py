"""The tier in the middle, under ASGI and WSGI: asks the back end in the background.

BACKEND is the URL to ask, INTERVAL and TIMEOUT are those of the check, CA the certificates to
trust, FAILURE what to answer without an answer; while the file that NO_DNS names is there, no name
is found.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resilience_mw import Config, Health, protect
from resilience_mw.health import UpstreamCheck
from resilience_mw.types import Receive, Scope, Send
from tests.health.lifespans import live

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_look_up = socket.getaddrinfo


def _look_up_unless_down(host: Any, *arguments: Any, **options: Any) -> Any:
    if not options.get("flags") and Path(os.environ["NO_DNS"]).exists():
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    return _look_up(host, *arguments, **options)


socket.getaddrinfo = _look_up_unless_down


def config() -> Config:
    check = UpstreamCheck(
        os.environ["BACKEND"],
        timeout=float(os.environ["TIMEOUT"]),
        interval=float(os.environ["INTERVAL"]),
        ca=os.environ.get("CA") or None,
    )
    failure = int(os.environ.get("FAILURE", "503"))
    health = Health(checks={"back-end": check}, forward_path="/status", failure_status=failure)
    return Config(health=health)


async def _asgi(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"page"})


def _wsgi(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", "4")])
    return [b"page"]


asgi = protect(_asgi, config())
wsgi = protect(_wsgi, config())

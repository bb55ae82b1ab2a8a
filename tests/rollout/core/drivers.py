"""The same two stacks and the same request, under ASGI and under WSGI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from resilience_mw import asgi, wsgi
from tests.asgi.harness import Exchange, run, scope
from tests.wsgi.harness import begin


@dataclass
class Answer:
    """What the client got."""

    status: int
    headers: Mapping[str, str]
    text: str


class ASGI:
    """Drives ASGI apps."""

    Middleware = asgi.RolloutMiddleware
    Limit = asgi.ConcurrencyLimitMiddleware
    Deadline = asgi.DeadlineMiddleware

    @staticmethod
    def app(text: str, status: int = 200, headers: Any = (), fails: Any = None) -> Any:
        """Return an app that answers with ``text``, or raises ``fails``."""

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if fails is not None:
                raise fails
            await receive()
            raw = [(n.lower().encode(), v.encode()) for n, v in headers]
            await send({"type": "http.response.start", "status": status, "headers": raw})
            await send({"type": "http.response.body", "body": text.encode()})

        return app

    @staticmethod
    def get(
        app: Any,
        target: str = "/",
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        peer: str = "198.51.100.7",
        root: str = "",
    ) -> Answer:
        """Send a request whose target is written as a client would."""
        raw = target.encode("latin-1")
        path = unquote_to_bytes(raw).decode("utf-8", "replace")
        fields = [(n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in _pairs(headers)]
        facts = scope(path, method=method, root=root, client=(peer, 50000), raw_path=raw)
        facts["headers"] = [f for f in facts["headers"] if f[0] not in dict(fields)] + fields

        async def ask() -> Exchange:
            try:
                return await Exchange(facts).through(app)
            finally:
                # A proxy's connections must not outlive their loop.
                if hasattr(getattr(app, "new", None), "aclose"):
                    await app.new.aclose()

        answer = run(ask())
        assert answer.status is not None
        found = {n.decode("latin-1"): v.decode("latin-1") for n, v in answer.headers.items()}
        return Answer(answer.status, found, answer.text.decode())


class WSGI:
    """Drives WSGI apps."""

    Middleware = wsgi.RolloutMiddleware
    Limit = wsgi.ConcurrencyLimitMiddleware
    Deadline = wsgi.DeadlineMiddleware

    @staticmethod
    def app(text: str, status: int = 200, headers: Any = (), fails: Any = None) -> Any:
        """Return an app that answers with ``text``, or raises ``fails``."""

        def app(environ: Any, start_response: Any) -> list[bytes]:
            if fails is not None:
                raise fails
            start_response(f"{status} Whatever", list(headers))
            return [text.encode()]

        return app

    @staticmethod
    def get(
        app: Any,
        target: str = "/",
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        peer: str = "198.51.100.7",
        root: str = "",
    ) -> Answer:
        """Send a request whose target is written as a client would."""
        path = unquote_to_bytes(target.encode("latin-1")).decode("latin-1")
        fields = {f"HTTP_{n.upper().replace('-', '_')}": v for n, v in _pairs(headers)}
        fields.setdefault("HTTP_HOST", "example.org")
        facts = {"RAW_URI": root + target, "REMOTE_ADDR": peer, **fields}
        response = begin(app, path, method=method, root=root, **facts)
        text = response.read().decode()
        found = {name.lower(): value for name, value in response.headers}
        return Answer(response.status, found, text)


DRIVERS = [ASGI, WSGI]


def _pairs(headers: Mapping[str, str] | None) -> list[tuple[str, str]]:
    return list((headers or {}).items())


def rule_of(app: Any, index: int = 0) -> Any:
    """Return what the snapshot says of one rule."""
    return app.snapshot().policies[0].rules[index]

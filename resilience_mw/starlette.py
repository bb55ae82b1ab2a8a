"""Helpers for Starlette and FastAPI, whose apps take our middlewares as they are.

    app.add_middleware(BackpressureMiddleware)      # from resilience_mw.asgi
    app = protect(app)                              # or all of them, around everything

In an endpoint, `remaining` is a dependency, and `snapshot` shows what the middlewares did:

    @app.get("/report")
    async def report(left: Annotated[float | None, Depends(remaining)]): ...

    @app.get("/load")
    async def load(request: Request):
        return snapshot(request.app)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import context
from .asgi import Guard
from .core.snapshot import Snapshot, summarize


async def remaining() -> float | None:
    """Return the seconds left until this request's deadline, as `resilience_mw.remaining`.

    A coroutine, so that FastAPI spends no thread on it.
    """
    return context.remaining()


def snapshot(app: Any) -> Snapshot:
    """Return the state of all guards of one app together, policies outermost first.

    Args:
        app: a Starlette or FastAPI app, or one of our middlewares around it. Mounted apps have a
            state of their own: ask for it with the mounted app.

    Raises:
        LookupError: no guard was found. Starlette builds the middlewares of `add_middleware` when
            it starts; and an app does not know what has been put around it.
    """
    found = [guard.snapshot() for guard in _guards(app)]
    if not found:
        raise LookupError("the app has no guard, or has not started yet")
    parts = tuple(part for state in found for part in state.policies)
    return summarize(parts, websockets=found[0].websockets)


def _guards(app: Any) -> Iterator[Guard]:
    while app is not None:
        if isinstance(app, Guard):
            yield app
        # An app of Starlette keeps its middlewares in a stack, each of them the next as its app.
        app = getattr(app, "middleware_stack", None) or getattr(app, "app", None)

"""Apps with roll-outs, for the command line."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette

from resilience_mw import RolloutRule
from resilience_mw.asgi import HealthMiddleware, RolloutMiddleware
from resilience_mw.wsgi import RolloutMiddleware as WSGIRolloutMiddleware

RULES = [
    RolloutRule("favourites", path="/item_collect.htm", percent=2),
    RolloutRule("cart", path="/cart", percent=20, by="user", cookie="sid"),
]


async def stack(scope: Any, receive: Any, send: Any) -> None:
    """Serve nothing: it is exported, not run."""


def wsgi_stack(environ: Any, start_response: Any) -> list[bytes]:
    """Serve nothing, under WSGI."""
    return []


app = HealthMiddleware(RolloutMiddleware(stack, new=stack, rules=RULES, server_name="web-1"))
wsgi = WSGIRolloutMiddleware(wsgi_stack, new=wsgi_stack, rules=RULES, server_name="web-1")
late = Starlette()
late.add_middleware(RolloutMiddleware, new=stack, rules=RULES, server_name="web-1")
stored = Starlette()
stored.add_middleware(
    RolloutMiddleware, new=stack, rules=RULES, server_name="web-1", store="file:rollout.toml"
)
twice = RolloutMiddleware(RolloutMiddleware(stack, new=stack, rules=RULES), new=stack, rules=RULES)


def make() -> Any:
    """Make an app with a roll-out."""
    return RolloutMiddleware(stack, new=stack, rules=RULES, server_name="web-1")

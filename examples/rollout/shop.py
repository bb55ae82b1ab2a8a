"""A shop that moves two pages from an old stack to a new one, and back at once.

uvicorn shop:app
curl -i http://127.0.0.1:8000/

README.md goes on from here.
"""

from __future__ import annotations

from typing import Any

from resilience_mw import RolloutGuard, RolloutRule
from resilience_mw.asgi import HealthMiddleware, RolloutMiddleware


async def old_shop(scope: Any, receive: Any, send: Any) -> None:
    """Serve all pages, as ever."""
    await page(scope, send, f"{scope.get('path')} by the old stack\n")


async def new_shop(scope: Any, receive: Any, send: Any) -> None:
    """Serve what has been written anew."""
    await page(scope, send, f"{scope.get('path')} by the new stack\n")


async def page(scope: Any, send: Any, text: str) -> None:
    """Answer a request with text."""
    if scope["type"] != "http":
        return
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


RULES = [
    # Whole servers, as the shop of the story did it: this one is in, or it is not.
    RolloutRule("favourites", path="/item_collect.htm", by="server"),
    # Users, each of whom sees one stack.
    RolloutRule("cart", path="/cart", by="user", cookie="session"),
]

app = HealthMiddleware(
    RolloutMiddleware(
        old_shop,
        new=new_shop,
        rules=RULES,
        server_name="web-17",
        store="file:rollout.toml",
        guard=RolloutGuard(max_latency_ratio=2.0),
        variant_header="x-stack",
    )
)

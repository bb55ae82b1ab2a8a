"""An app with a hundred checks, so that some are still to begin when its worker serves."""

from __future__ import annotations

import asyncio

from resilience_mw import Config, Health, protect
from resilience_mw.health import Check


def passes() -> None:
    """Pass."""


async def passes_later() -> None:
    """Pass a moment later."""
    await asyncio.sleep(0.001)


def hello(environ, start_response):
    """Answer."""
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]


CHECKS = {f"n{number}": Check((passes, passes_later)[number % 2]) for number in range(100)}

app = protect(hello, Config(health=Health(checks=CHECKS, trusted=("127.0.0.1",))))

"""An ASGI app that can serve so many requests a second, and what its gate says about itself."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import time
from typing import Any

from resilience_mw import protect
from tests.priority.configs import CONFIGS


async def respond(scope: Any, receive: Any, send: Any) -> None:
    """Block the loop (`/block`), wait (`/wait`), or tell the state (`/snapshot`)."""
    body = b"done"
    match scope["path"]:
        case "/block":
            # Sleeping keeps the loop from turning as computing does, whatever else the CPU does.
            time.sleep(0.015)  # noqa: ASYNC251
        case "/wait":
            await asyncio.sleep(0.4)
        case "/snapshot":
            state = dataclasses.asdict(app.snapshot())
            body = json.dumps(state).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


app = protect(respond, CONFIGS[os.environ["CONFIG"]], interface="asgi")

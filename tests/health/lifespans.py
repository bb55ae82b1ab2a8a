"""The lifespan of an app that has nothing to do at either end."""

from __future__ import annotations

from resilience_mw.types import Receive, Send


async def live(receive: Receive, send: Send) -> None:
    """Start, and stop."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return

"""A full gate, and what is read and written around it."""

from __future__ import annotations

from resilience_mw.core import Gate

from .harness import PATIENCE, Message

DISCONNECT = {"type": "http.disconnect"}


def part(body: bytes, more: bool = True) -> Message:
    """Return a part of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


def full(max_queue: int = 5, max_wait: float = PATIENCE * 3) -> Gate:
    """Return a gate whose only slot is taken."""
    gate = Gate(1, max_queue=max_queue, max_wait=max_wait)
    gate.inflight = 1
    return gate


def free(gate: Gate) -> None:
    """Give that slot back."""
    gate.exit(None, 0.0)  # type: ignore[arg-type]


async def body_of(receive) -> list[Message]:
    """Read what an app reads: to the end of the body, or of the client."""
    messages: list[Message] = []
    while not messages or messages[-1].get("more_body", False):
        messages.append(await receive())
    return messages

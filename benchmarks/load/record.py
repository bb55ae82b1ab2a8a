"""What is known of one request."""

from __future__ import annotations

from typing import Literal

Failure = Literal["timeout", "refused", "reset", "malformed", "unsent"]


class Record:
    """One request: when it was meant to be sent, and how it ended.

    Attributes:
        intended: seconds from the start of the run at which it was meant to be sent.
        lag: seconds by which the generator itself was late.
        latency: seconds from `intended` to the end of the answer, or to giving up.
        outcome: the status code, or why there is none: `timeout` (patience ran out), `refused`
            (no connection), `reset` (closed before the answer's end), `malformed` (not HTTP),
            `unsent` (the generator had no socket left).
        retry_after: the answer's Retry-After, as sent.
    """

    __slots__ = ("intended", "lag", "latency", "outcome", "retried", "retry_after")

    def __init__(self, intended: float, lag: float = 0.0) -> None:
        self.intended = intended
        self.lag = lag
        self.latency = 0.0
        self.outcome: int | Failure | None = None
        self.retry_after: str | None = None
        self.retried = False

    def __repr__(self) -> str:
        return f"Record(intended={self.intended:.3f}, {self.outcome}, {self.latency:.3f} s)"

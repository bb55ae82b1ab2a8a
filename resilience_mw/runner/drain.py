"""The timetable of a stop, and what a person reads of it."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from ..config import Config, Runner

logger = logging.getLogger("resilience_mw")

MARGIN = 2.0
"""Seconds past ``drain_delay + shutdown_timeout`` within which a process has ended, forced or not:
the app's own shutdown is given at least what remains of them."""

_MOST = 10
"""Requests named when a stop is forced."""


@dataclass(frozen=True)
class Timetable:
    """When each stage of a stop ends (monotonic seconds).

    Attributes:
        accept_until: not ready, but still accepting and serving.
        force_at: what is in flight may finish.
        end_by: the process is gone.
    """

    accept_until: float
    force_at: float
    end_by: float

    @classmethod
    def begin(cls, runner: Runner, now: float, *, delay: bool = True) -> Self:
        """Plan a stop that begins now, with or without the ``drain_delay``."""
        accept_until = now + (runner.drain_delay if delay else 0.0)
        force_at = accept_until + runner.shutdown_timeout
        return cls(accept_until, force_at, force_at + MARGIN)


class Progress:
    """Logs each stage of a stop once.

    Args:
        who: what begins each line, such as ``worker 4711``.
    """

    def __init__(self, who: str) -> None:
        self.who = who
        self._said: set[str] = set()

    def say(self, stage: str, message: str, *, level: int = logging.INFO) -> None:
        """Log ``message``, unless ``stage`` has been logged before."""
        if stage not in self._said:
            self._said.add(stage)
            logger.log(level, "%s: %s", self.who, message)


def head_timeout(config: Config) -> float:
    """Return the seconds from a request's first byte until its head must be complete.

    The deadline for the whole request counts as well, where it is the shorter one.
    """
    return min(config.runner.headers_timeout, config.deadline.receive_timeout or math.inf)


def timeouts(runner: Runner) -> str:
    """Return the times in force, for the line that a server logs when it starts."""
    return (
        f"keep-alive {runner.keep_alive_timeout:g} s, headers {runner.headers_timeout:g} s, "
        f"drain delay {runner.drain_delay:g} s, shutdown {runner.shutdown_timeout:g} s"
    )


def running(requests: Iterable[tuple[str, str, float]]) -> str:
    """Return what to say of requests that are still running, longest first.

    Args:
        requests: method, path and age (seconds) of each.
    """
    ordered = sorted(requests, key=lambda request: -request[2])
    named = [f"{method} {path[:80]!r} for {age:.1f} s" for method, path, age in ordered[:_MOST]]
    if len(ordered) > _MOST:
        named.append(f"{len(ordered) - _MOST} more")
    return ", ".join(named) or "none"

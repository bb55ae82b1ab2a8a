"""The options that the runner takes to the server."""

from __future__ import annotations

from dataclasses import dataclass

from resilience_mw.config.option import option
from resilience_mw.config.rules import Boolean, Number
from resilience_mw.config.section import Section

_SECONDS = Number()
_POSITIVE_SECONDS = Number(open=True)


@dataclass(frozen=True, kw_only=True, repr=False)
class Runner(Section, name="runner"):
    """What the runner sets on the server around the app.

    Example: ``Runner(keep_alive_timeout=75, drain_delay=5)``
    """

    keep_alive_timeout: float = option(
        65.0,
        _POSITIVE_SECONDS,
        "Keep an idle connection open; longer than the balancer's idle timeout.",
        unit="seconds",
        node="keepAliveTimeout",
    )
    headers_timeout: float = option(
        66.0,
        _POSITIVE_SECONDS,
        "The whole request head has been received, else 408 and close.",
        unit="seconds",
        node="headersTimeout",
    )
    protect: bool = option(True, Boolean(), "Wrap an app that is not wrapped yet; never twice.")
    shutdown_timeout: float = option(
        25.0,
        _SECONDS,
        "Let requests in flight finish after the drain delay, then force.",
        unit="seconds",
        node="shutdownTimeout",
    )
    drain_delay: float = option(
        3.0,
        _SECONDS,
        "After SIGTERM: not ready, but still accepting and serving. Ctrl-C skips it.",
        unit="seconds",
    )

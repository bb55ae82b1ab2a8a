"""The events of a proxy: each change is said once, and never for each request."""

from __future__ import annotations

import logging
from time import monotonic

logger = logging.getLogger("resilience_mw")

CALM = 5.0
"""Seconds without a failure until we say that all is well: one of several workers that is down
fails now and then, which is one event and not one for each request."""


class Reach:
    """Whether the upstream at `url` answers, as far as its events are concerned."""

    __slots__ = ("_failed_at", "_lost", "_url", "_websocket")

    def __init__(self, url: str) -> None:
        self._url = url
        self._lost = False
        self._failed_at = 0.0
        self._websocket = False

    def failed(self, why: str) -> None:
        """Note that a request found nobody."""
        self._failed_at = monotonic()
        if not self._lost:
            self._lost = True
            logger.warning("upstream %s is unreachable: %s", self._url, why)

    def answered(self) -> None:
        """Note that a request was answered."""
        if self._lost and monotonic() - self._failed_at > CALM:
            self._lost = False
            logger.warning("upstream %s is reachable again", self._url)

    def websocket(self) -> None:
        """Note that a websocket was refused."""
        if not self._websocket:
            self._websocket = True
            logger.warning("a websocket was refused: none passes to upstream %s", self._url)

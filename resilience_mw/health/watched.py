"""What is known of one check."""

from __future__ import annotations

import dataclasses
import logging
import time

from ..core.snapshot import CheckResult
from .check import Check, CheckFailed, reason_of
from .flight import Flight
from .hysteresis import Hysteresis
from .places import Thread

logger = logging.getLogger("resilience_mw")

SLACK = 5.0
"""Seconds by which an answer may be late before it counts for nothing."""


class Watched:
    """A check, the state it is in, and the ask that is under way.

    Args:
        name: what it is called.
        check: what to ask; its numbers are read here and never again, since a probe that changes
            them must not stop us from asking.
    """

    def __init__(self, name: str, check: Check) -> None:
        self.name = name
        self.check = check
        self.flight: Flight | None = None
        self.thread = Thread(name)
        self.interval, self.jitter = check.interval, check.jitter
        self.timeout, self.critical = check.timeout, check.critical
        self.result = CheckResult(name, False, self.critical, "not asked yet", time.time())
        self._state = Hysteresis(check.fall, check.rise)
        self._asked_at: float | None = None
        pause = self.interval * (1 + self.jitter)
        self._fresh = pause + self.timeout
        self._stale = 2 * self._fresh + SLACK

    def take(self, flight: Flight, now: float) -> None:
        """Note how an ask ended, or that its time is up."""
        if not flight.over:
            self.observe("timeout", None, now)
        elif flight.error is None:
            self.observe(_verdict(flight.value), self._status(), now)
        elif isinstance(flight.error, CheckFailed):
            self.observe(reason_of(flight.error), self._status(), now)
        else:
            # The class alone: the text may hold an address or a password.
            self.observe(type(flight.error).__name__, None, now, flight.error)
        # Its traceback keeps alive whatever the probe had open.
        flight.value = flight.error = None

    def observe(
        self, reason: str, status: int | None, now: float, error: BaseException | None = None
    ) -> None:
        """Note an answer; an empty reason is a pass."""
        known = self._state.passing is not None
        turned = self._state.observe(not reason)
        passing = bool(self._state.passing)
        at = time.time()
        self._asked_at = now
        if not passing and not reason:
            reason = self.result.reason  # not often enough in a row to forget why
        self.result = CheckResult(
            self.name,
            passing,
            self.critical,
            "" if passing else reason,
            at if turned else self.result.since,
            at,
            status,
        )
        if turned and not passing:
            logger.warning("health check %s fails: %s", self.name, reason)
            logger.debug("health check %s", self.name, exc_info=error)
        elif turned and known:
            logger.info("health check %s passes again", self.name)

    def _status(self) -> int | None:
        """Return what the next tier answered, if that is a status: it may be passed on."""
        status = getattr(self.check, "status", None)
        # RFC 9110, section 15: what is not in between is no final status.
        return int(status) if isinstance(status, int) and 200 <= status <= 599 else None

    def current(self, now: float) -> CheckResult:
        """Return what is known; what has not been asked for long is not known."""
        if self._asked_at is None or now - self._asked_at <= self._stale:
            return self.result
        return dataclasses.replace(self.result, passing=False, reason="not asked lately")

    def answered(self, now: float) -> int | None:
        """Return the status of the last answer, if it is fresh."""
        if self._asked_at is None or now - self._asked_at > self._fresh + min(1.0, self._fresh):
            return None
        return self.result.status


def _verdict(value: object) -> str:
    """Return why what a probe returned is no pass; empty = it is one."""
    if value is False:
        return "returned False"
    # One that is made in the probe, and not asked, would pass for ever.
    return "returned a check" if isinstance(value, Check) else ""

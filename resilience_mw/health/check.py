"""A check: what tells whether something that the app needs is there."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from ..config.rules import Boolean, Integer, Invalid, Number
from ..config.wording import one_line, show
from ..exceptions import ConfigError
from ..keywords import strict

_SECONDS = Number(open=True)
_COUNT = Integer(minimum=1)
_READ = 1000


class CheckFailed(Exception):
    """A check's verdict "no", with a reason that anybody may read.

    Args:
        reason: few words of low cardinality (``refused``, ``timeout``, ``status 500``): no address,
            no secret, no text of an exception.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def reason_of(failed: CheckFailed) -> str:
    """Return its reason as it may be shown: never empty, on one line, and short.

    Whoever raises it may have made something else of the reason, and a list of checks must not
    show a line that nobody but a check has written.
    """
    reason = getattr(failed, "reason", None)
    if not isinstance(reason, str | int):
        return "failed"
    printable = "".join(mark if mark.isprintable() else " " for mark in str(reason)[:_READ])
    return one_line(printable) or "failed"


@strict
class Check:
    """Asks, now and then, whether something the app needs is there.

    Args:
        probe: called without arguments, in the background. It passes unless it raises or returns
            ``False``. A coroutine function is awaited; any other is called in a thread.
        critical: whether the app is not ready while the check fails.
        interval: seconds from one start to the next.
        timeout: seconds after which a probe that has not returned has failed.
        fall: failures in a row that turn a passing check into a failing one.
        rise: passes in a row that turn a failing check into a passing one.
        jitter: share of the interval by which each start is moved at random, so that not all
            instances ask, or fail, at once.

    Raises:
        ConfigError: a value breaks its rule.
    """

    _subject = ""
    """What it asks, for people; a built-in check sets it, without a query or a password."""

    def __init__(
        self,
        probe: Callable[[], object] | Callable[[], Awaitable[object]],
        *,
        critical: bool = True,
        interval: float = 5.0,
        timeout: float = 1.0,
        fall: int = 1,
        rise: int = 1,
        jitter: float = 0.0,
    ) -> None:
        name = type(self).__name__
        if not callable(probe):
            raise ConfigError(f"{name} probe must be callable, got {show(probe)}")
        if inspect.isclass(probe) and issubclass(probe, Check):
            # Making one says nothing about what it would ask, and so would pass for ever.
            raise ConfigError(f"{name} probe must not be a kind of check, got {show(probe)}")
        for option, rule, value in (
            ("critical", Boolean(), critical),
            ("interval", _SECONDS, interval),
            ("timeout", _SECONDS, timeout),
            ("fall", _COUNT, fall),
            ("rise", _COUNT, rise),
            ("jitter", Number(maximum=1.0), jitter),
        ):
            try:
                rule.check(value)
            except Invalid as error:
                message = f"{name} {option} {error.rule}, got {show(value)}"
                raise ConfigError(message) from None
        self.probe = probe
        self.critical = critical
        self.interval = float(interval)
        self.timeout = float(timeout)
        self.fall = fall
        self.rise = rise
        self.jitter = float(jitter)

    def __repr__(self) -> str:
        """Name the kind, and what it asks: an address without its secrets, or a probe's name."""
        probe = self.probe
        own = getattr(probe, "__self__", None) is self
        asked = show(self._subject) if self._subject else ""
        return f"{type(self).__name__}({asked if own else getattr(probe, '__qualname__', '...')})"

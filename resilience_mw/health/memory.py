"""Whether there is memory left."""

from __future__ import annotations

from typing import Unpack

from ..config.wording import show
from ..exceptions import ConfigError
from ..signals.memory import memory_used
from .check import Check, CheckFailed
from .keywords import CheckOptions


class MemoryCheck(Check):
    """Pass while less than a share of the memory is used.

    In a container that is the container's limit, not the machine's memory, and file pages that the
    kernel would drop first do not count (`resilience_mw.signals.memory.memory_used`).

    All instances of an app tend to fill up together, and each that leaves the balancer makes the
    others fill up faster: give it ``critical=False``, or ``fall`` and ``jitter``.

        MemoryCheck(max_used=0.9, critical=False)

    Args:
        max_used: share that fails, above 0 and at most 1.
        timeout: seconds.
        options: those of `Check`.

    Reason of failure: ``full``.

    Raises:
        ConfigError: an argument breaks its rule.
    """

    def __init__(
        self, max_used: float = 0.95, timeout: float = 1.0, **options: Unpack[CheckOptions]
    ) -> None:
        super().__init__(self._ask, timeout=timeout, **options)
        if isinstance(max_used, bool) or not isinstance(max_used, int | float):
            raise ConfigError(f"MemoryCheck max_used must be a number, got {show(max_used)}")
        if not 0 < max_used <= 1:
            raise ConfigError(
                f"MemoryCheck max_used must be above 0 and at most 1, got {show(max_used)}"
            )
        self.max_used = max_used

    def _ask(self) -> None:
        if memory_used() >= self.max_used:
            raise CheckFailed("full")

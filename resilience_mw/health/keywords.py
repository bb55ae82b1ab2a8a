"""What every built-in check takes besides its own arguments."""

from __future__ import annotations

from typing import TypedDict


class CheckOptions(TypedDict, total=False):
    """The keyword options of `Check` that are the same for all built-in checks."""

    critical: bool
    interval: float
    fall: int
    rise: int
    jitter: float

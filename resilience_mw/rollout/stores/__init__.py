"""Where the shares live: a file or Redis, the same for every process."""

from __future__ import annotations

from .base import Change, Overtaken, RuleHeld, Store, StoreError, Unanswered, UnknownRule
from .opening import open_store

__all__ = [
    "Change",
    "Overtaken",
    "RuleHeld",
    "Store",
    "StoreError",
    "Unanswered",
    "UnknownRule",
    "open_store",
]

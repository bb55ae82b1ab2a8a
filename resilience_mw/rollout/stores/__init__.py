"""Where the shares live: a file or Redis, the same for every process."""

from __future__ import annotations

from .base import Change, RuleHeld, Store, StoreError
from .opening import open_store

__all__ = ["Change", "RuleHeld", "Store", "StoreError", "open_store"]

"""What the app needs, asked in the background, so that no probe ever waits for an answer."""

from __future__ import annotations

from .check import Check, CheckFailed

__all__ = ["Check", "CheckFailed"]

"""Imports what is not there."""

from __future__ import annotations

import resilience_mw.nowhere  # type: ignore[import-not-found]  # noqa: F401

"""A module that cannot be imported."""

from __future__ import annotations

raise RuntimeError("no database at redis://:secret@db/0")

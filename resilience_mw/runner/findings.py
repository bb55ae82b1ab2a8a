"""What `resilience-mw check` finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """One contradiction.

    Attributes:
        level: an `error` fails requests or protects from nothing; a `warning` may be meant.
        rule: its short name.
        message: the two numbers, the rule, and what comes of it.
        numbers: the values compared, by name.
    """

    level: Level
    rule: str
    message: str
    numbers: Mapping[str, float | str] = field(default_factory=dict)

"""How much of a rule's traffic the new stack gets, as a store holds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """The state of one rule, apart from its code.

    Args:
        percent: 0 to 100, in steps of 0.01.
        held: set to 0 by the guard; nothing but a person's clearing raises it again.
    """

    percent: float
    held: bool = False

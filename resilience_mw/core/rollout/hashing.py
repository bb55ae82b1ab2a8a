"""Where a key stands in the order in which a roll-out lets keys in.

Every key has one of 10,000 places in each rule, and a share of p percent holds the places below
100 p. So a larger share holds all that a smaller one does, and the place depends on nothing but
the two names: not on the server, the process, the Python version or ``PYTHONHASHSEED``.
"""

from __future__ import annotations

from hashlib import blake2b

PLACES = 10_000
"""Places in a rule: a share has steps of a hundredth of a percent."""


def place(rule: str, key: str) -> int:
    """Return the place of ``key`` in ``rule``, 0 to 9,999.

    It is the remainder of the first 64 bits of BLAKE2b over both names in UTF-8, with a zero byte
    between them. The rule is part of it so that the users who meet one new page first are not the
    ones who meet every other new page first, too.
    """
    # A header may hold what is no text: it gets a place like anything else.
    data = f"{rule}\0{key}".encode("utf-8", "backslashreplace")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") % PLACES


def places_of(percent: float) -> int:
    """Return how many places a share of ``percent`` holds, nearest step; never more than all."""
    return min(PLACES, max(0, round(percent * 100)))

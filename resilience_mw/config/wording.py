"""Words for error messages: a value on one short line, and the name that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

LONGEST_VALUE = 80

_READ = 25 * LONGEST_VALUE
"""Characters that are looked at; a password beyond them would be cut off anyway."""

_NEAR = 0.6
"""How alike two names are, from 0 to 1, before one is taken for the other: `difflib`'s own limit
for close matches."""

_TELLING = 4
"""Characters of a name that say enough if they are in another one."""

_PREFIX = "resilience_"
"""What all variables have in common: it says nothing about which is meant."""

_USER = re.compile(r"(?<=://)\S*@")
"""The user name and password of a URL, however many of its marks are in them."""

_SECRET = re.compile(r"(?i)([?&][\w.-]*(?:pass|pwd|secret|token|key|auth)[\w.-]*=)[^&\s'\"]+")
"""A parameter of a URL whose name tells that it is secret, up to its value."""


def show(value: object) -> str:
    """Return `value` as Python would write it, on one line and shortened, never raising.

    Of URLs the user names and passwords are left out: what is shown ends up in logs.
    """
    # Cut before repr: a megabyte pasted into a variable should not be escaped only to be dropped.
    if isinstance(value, str):
        rest = f"... ({len(value)} characters)" if len(value) > LONGEST_VALUE else ""
        return f"{masked(value[:_READ])[:LONGEST_VALUE]!r}{rest}"
    try:
        text = repr(value)
    except Exception:  # a foreign __repr__, or an integer with more digits than Python prints
        text = f"<{type(value).__name__}>"
    return one_line(masked(text[:_READ]))


def masked(text: str) -> str:
    """Return `text` with ``***`` for whatever stands before the ``@`` of a URL, and for secrets.

    Those are parameters of a URL that are called so: ``?password=``, ``&access_token=``.
    """
    if "@" in text:
        text = _USER.sub("***@", text)
    return _SECRET.sub(r"\1***", text) if "=" in text else text


def plain(name: str) -> str:
    """Return a name that somebody typed, shortened and with its control characters escaped."""
    return repr(name[:LONGEST_VALUE])[1:-1] + "..." * (len(name) > LONGEST_VALUE)


def one_line(text: str, longest: int = LONGEST_VALUE) -> str:
    """Return `text` with every run of white space as one blank, cut after `longest` characters."""
    # Reading a little more than is kept is enough, however long the text is.
    line = " ".join(text[: 4 * longest].split())
    return line if len(line) <= longest else f"{line[:longest]}..."


def likely(name: str, candidates: Iterable[str]) -> str:
    """Return the dotted candidate that was probably meant by `name`; empty = none is near.

    The part after the last dot counts, without case and separators, so that an option written under
    the wrong section or in the original's camelCase is found; the own section breaks near ties.
    """
    section = name.rpartition(".")[0]
    best, most = "", 0.0
    for candidate in candidates:
        own_section = candidate.rpartition(".")[0] == section
        likeness = _likeness(_core(name), _core(candidate))
        if likeness >= _NEAR and likeness + 0.1 * own_section > most:
            best, most = candidate, likeness + 0.1 * own_section
    return best


def hint(meant: str, known: Iterable[str] = ()) -> str:
    """Return how an error about an unknown name goes on: with what was meant, or what there is."""
    if meant:
        return f"; did you mean {plain(meant)}?"
    listed = ", ".join(plain(name) for name in known)
    return f"; there are {listed}" if listed else ""


def _likeness(one: str, other: str) -> float:
    ratio = SequenceMatcher(None, one, other).ratio()
    shorter, longer = sorted((one, other), key=len)
    # A flag without its section is far shorter, and meant all the same.
    return max(ratio, _NEAR) if len(shorter) >= _TELLING and shorter in longer else ratio


def _core(name: str) -> str:
    own = name.rpartition(".")[2].lower().removeprefix(_PREFIX)
    return own.replace("_", "").replace("-", "")[:LONGEST_VALUE]

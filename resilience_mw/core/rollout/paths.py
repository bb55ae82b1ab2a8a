"""Which spellings of a path are taken at their word.

A rule moves pages to another program, which may read a path in its own way. What looks like one
path to us and like another one further in stays on the old stack.
"""

from __future__ import annotations

import re

_ODD_ESCAPE = re.compile(
    # Unreserved characters need no escape (RFC 3986, 2.3; the tilde was once escaped by all), a
    # slash, a backslash or a control character has no business in one; and some servers know
    # escapes of other forms, such as %u002e, that to others are none.
    r"%(?:2[def]|5[cf]|[46][1-9a-f]|[57][0-9a]|3[0-9]|[01][0-9a-f]|7f|(?![0-9a-f]{2}))",
    re.IGNORECASE,
)
_ODD_PATH = re.compile(
    # An empty or dotted segment (also with parameters, as in "..;x"), a backslash, a control
    # character, what stands for bytes that are no UTF-8 (an overlong dot, to some), or an escape
    # that whoever decodes twice would read as one of these.
    r"//|/\.{1,2}(?:[/;]|$)|[\\\x00-\x1f\x7f\ufffd\ud800-\udfff]|%(?:2[ef]|5c|[01][0-9a-f])",
    re.IGNORECASE,
)


def plainly_written(raw: str) -> bool:
    """Return whether a path, as the client wrote it, escapes nothing that needs no escape."""
    return "%" not in raw or _ODD_ESCAPE.search(raw) is None


def straight(path: str) -> bool:
    """Return whether a decoded path leads where it seems to, with no ``//``, ``.`` or ``..``."""
    return _ODD_PATH.search(path) is None

"""Tokens of HTTP: what headers, cookies and methods may be called (RFC 9110, section 5.6.2)."""

from __future__ import annotations

import re
from typing import TypeGuard

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def is_token(value: object) -> TypeGuard[str]:
    """Whether ``value`` is a text that can be such a name."""
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None

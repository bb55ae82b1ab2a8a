"""Constructors that say which keyword was misspelt, and what was probably meant."""

from __future__ import annotations

import functools
import inspect
from typing import Any, TypeVar

from .exceptions import KeywordError

T = TypeVar("T", bound=type)


def strict(kind: T) -> T:
    """Have a class say what was meant by a keyword that it does not know.

    Its subclasses do so as well, as far as they hand on what they do not know themselves.
    """
    init: Any = kind.__init__  # type: ignore[misc]
    known = frozenset(inspect.signature(init).parameters)

    @functools.wraps(init)
    def checked(self: Any, *values: Any, **options: Any) -> None:
        for name in options:
            if name not in known:
                raise _unknown(type(self), name)
        init(self, *values, **options)

    kind.__init__ = checked  # type: ignore[misc]
    return kind


def _unknown(kind: type, name: str) -> KeywordError:
    # Only now: what is built of nothing but right names loads nothing for the wrong ones.
    from .config.wording import hint, likely, plain

    known = [
        parameter.name
        for base in kind.__mro__
        if "__init__" in vars(base) and base is not object
        for parameter in list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    meant = likely(name, known)
    told = hint(meant, dict.fromkeys(known))
    return KeywordError(f"{kind.__name__}: unknown option {plain(name)}{told}", meant=meant)

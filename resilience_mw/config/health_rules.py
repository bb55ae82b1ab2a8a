"""What the options of health checks must be."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urlsplit

from resilience_mw.config.rules import Invalid, Many, Number, Rule
from resilience_mw.config.wording import masked

KINDS = (
    "http",
    "https",
    "http+unix",
    "unix",
    "tcp",
    "redis",
    "rediss",
    "redis+unix",
    "disk",
    "memory",
    "django",
)
"""What the text of a check begins with, before the colon; any other is a Python module."""

SHEDDING_SECONDS = 10.0
"""Over how long the share of refusals is taken, unless that is said."""

_NAME = frozenset(string.ascii_letters + string.digits + "-_.:")
_NEEDS_HOST = ("http", "https", "tcp")


class Named(dict[str, Any]):
    """Values by name that nobody can change, so that a section can be compared and hashed."""

    def _fixed(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("options cannot be changed")

    __setitem__ = __delitem__ = __ior__ = _fixed
    clear = pop = popitem = setdefault = update = _fixed

    def __repr__(self) -> str:
        """Show all but the passwords in the URLs: options are printed and logged."""
        shown = (
            f"{name!r}: {masked(what)!r}" if isinstance(what, str) else f"{name!r}: {what!r}"
            for name, what in self.items()
        )
        return f"{{{', '.join(shown)}}}"

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))

    def __reduce__(self) -> tuple[type[Named], tuple[dict[str, Any]]]:
        return Named, (dict(self),)


NOTHING = Named()


@dataclass(frozen=True)
class Name(Rule):
    """What a check is called: it stands in lists, documents and labels."""

    kind = "name"

    def check(self, value: object) -> str:
        if not isinstance(value, str) or not value or not _NAME.issuperset(value):
            raise Invalid('must be a name of letters, digits, "-", "_", "." and ":"', value)
        return value


@dataclass(frozen=True)
class Host(Rule):
    """The name or the address of an interface, without brackets or port."""

    kind = "host"

    def check(self, value: object) -> str:
        if not isinstance(value, str) or not value or not _NAME.issuperset(value):
            raise Invalid("must be a host name or an address", value)
        return value


@dataclass(frozen=True)
class Checks(Rule):
    """Checks by name: objects, callables or texts; as text ``name=what``, separated by commas.

    A list of pairs will do, too. Two names that differ in case only are one name twice: they would
    be one label in most of the systems that read them.
    """

    kind = "checks by name"
    separator = Many.separator

    def check(self, value: object) -> Named:
        checks: dict[str, Any] = {}
        seen: set[str] = set()
        for name, what in self._pairs(value):
            Name().check(name)
            if name.lower() in seen:
                raise Invalid("must have distinct names, whatever their case", name)
            seen.add(name.lower())
            checks[name] = self._checked(name, what)
        return Named(checks)

    def _pairs(self, value: object) -> list[tuple[Any, Any]]:
        if isinstance(value, Mapping):
            return list(value.items())
        if isinstance(value, (list, tuple)):
            pairs = [tuple(pair) for pair in value if isinstance(pair, (list, tuple))]
            if len(pairs) == len(value) and all(len(pair) == 2 for pair in pairs):
                return [(name, what) for name, what in pairs]
        raise Invalid("must be a mapping of names to checks", value)

    def _checked(self, name: str, what: object) -> object:
        if isinstance(what, str):
            return _well_formed(name, what)
        if callable(what) or callable(getattr(what, "probe", None)):
            return what
        rule = "must be a mapping of names to checks, callables or their texts"
        raise Invalid(rule, {name: what})

    def parse(self, text: str) -> object:
        pairs = [part.partition("=") for part in text.split(self.separator) if part.strip()]
        if not all(equals for _, equals, _ in pairs):
            return text
        found = [(name.strip(), what.strip()) for name, _, what in pairs]
        # As pairs where a mapping would hide that a name is there twice.
        return dict(found) if len(dict(found)) == len(found) else found

    def text(self, value: Any) -> str:
        return self.separator.join(f"{name}={what}" for name, what in value.items())


def _well_formed(name: str, text: str) -> str:
    """Return the text of a check, or raise `Invalid`; whether it can be built is not known here."""
    kind, colon, rest = text.partition(":")
    if kind not in KINDS:
        module = all(part.isidentifier() for part in kind.split("."))
        target = all(part.isidentifier() for part in rest.split("."))
        if colon and module and target:
            return text
        kinds = ", ".join(f"{known}:" for known in KINDS)
        rule = f'must be checks that begin with {kinds} or are "module:attribute"'
        raise Invalid(rule, {name: text})
    if kind not in _NEEDS_HOST:
        return text
    try:
        url = urlsplit(text)
        found = bool(url.hostname) and (url.port is not None or kind != "tcp")
    except ValueError:
        found = False
    if not found or not rest.startswith("//") or any(mark.isspace() for mark in text):
        raise Invalid(f"must be checks with a good URL after {kind}:", {name: text})
    return text


@dataclass(frozen=True)
class Shedding(Rule):
    """A share of the requests, and over how many seconds; as text ``0.5`` or ``0.5,10``."""

    kind = "share, or share and seconds"

    def check(self, value: object) -> tuple[float, float]:
        both = value if isinstance(value, (list, tuple)) else (value, SHEDDING_SECONDS)
        if len(both) != 2:
            raise Invalid("must be a share, or a share and seconds", value)
        try:
            return (
                Number(maximum=1.0, open=True).check(both[0]),
                Number(minimum=0.1).check(both[1]),
            )
        except Invalid as error:
            part = "share" if error.value is both[0] else "seconds"
            rule = f"must be a share, or a share and seconds, and its {part} {error.rule}"
            raise Invalid(rule, error.value) from None

    def parse(self, text: str) -> object:
        if text.startswith("(") and text.endswith(")"):
            text = text[1:-1]  # as it is written in Python
        parts = tuple(Number().parse(part.strip()) for part in text.split(","))
        return parts[0] if len(parts) == 1 else parts

    def text(self, value: tuple[float, float]) -> str:
        return ",".join(Number().text(part) for part in value)

"""What a value must be: its type and its range, and how it is written as text.

A rule has three methods.
`check` takes a Python value and returns it normalised, or raises `Invalid`.
`parse` turns text (an environment variable, a flag) into the value to check; it never raises,
because `check` then says what is wrong with the text.
`text` writes a checked value so that `parse` reads it back.
"""

from __future__ import annotations

import ipaddress
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.tokens import is_token

# Above this, `threading.Lock.acquire` overflows on some platforms: 49 days on the narrowest.
LONGEST_SECONDS = 1_000_000.0
LARGEST_COUNT = 1_000_000_000

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_OFF = frozenset({"none", "off"})


class Invalid(Exception):
    """A value broke a rule; `rule` is worded to follow the option's name."""

    def __init__(self, rule: str, value: object) -> None:
        super().__init__(rule)
        self.rule = rule
        self.value = value


class Rule(ABC):
    """One kind of value."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """How people call the type, in tables and help."""

    @abstractmethod
    def check(self, value: object) -> Any:
        """Return the normalised value, or raise `Invalid`."""

    def parse(self, text: str) -> object:
        """Return what `text` stands for, or the text itself where it stands for nothing."""
        return text

    def text(self, value: Any) -> str:
        """Return the text that `parse` reads as `value`."""
        return str(value)


@dataclass(frozen=True)
class Integer(Rule):
    """A whole number from `minimum` to `maximum`; True and False are no numbers here."""

    minimum: int = 0
    maximum: int = LARGEST_COUNT
    kind = "integer"

    def check(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Invalid("must be an integer", value)
        if value < self.minimum:
            raise Invalid(f"must be >= {self.minimum}", value)
        if value > self.maximum:
            raise Invalid(f"must be <= {self.maximum}", value)
        return int(value)

    def parse(self, text: str) -> object:
        try:
            return int(text) if text.isascii() else text
        except ValueError:
            return text


@dataclass(frozen=True)
class Number(Rule):
    """A finite number: at least `minimum`, or above it if `open`, and at most `maximum`."""

    minimum: float = 0.0
    maximum: float = LONGEST_SECONDS
    open: bool = False
    kind = "number"

    def check(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Invalid("must be a number", value)
        if isinstance(value, float) and not math.isfinite(value):
            raise Invalid("must be a finite number", value)
        if value < self.minimum or (self.open and value == self.minimum):
            raise Invalid(f"must be {'>' if self.open else '>='} {self.minimum:g}", value)
        if value > self.maximum:
            raise Invalid(f"must be <= {self.text(self.maximum)}", value)
        return float(value)

    def parse(self, text: str) -> object:
        # Whole numbers first, so that an error shows the number as it was typed.
        whole = Integer().parse(text)
        if isinstance(whole, int):
            return whole
        try:
            return float(text) if text.isascii() else text
        except ValueError:
            return text

    def text(self, value: float) -> str:
        return str(int(value)) if value.is_integer() else repr(value)


@dataclass(frozen=True)
class Boolean(Rule):
    """True or False; as text also 1/0, yes/no, on/off in any case."""

    kind = "boolean"

    def check(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise Invalid("must be true or false", value)
        return value

    def parse(self, text: str) -> object:
        word = text.lower()
        return True if word in _TRUE else False if word in _FALSE else text

    def text(self, value: bool) -> str:
        return "true" if value else "false"


@dataclass(frozen=True)
class Choice(Rule):
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def kind(self) -> str:
        return " or ".join(f'"{word}"' for word in self.words)

    def check(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise Invalid(f"must be {self.kind}", value)
        return value


@dataclass(frozen=True)
class Path(Rule):
    """The path of a URL, or the start of one: no query, no fragment, no white space."""

    kind = "path"

    def check(self, value: object) -> str:
        if not isinstance(value, str):
            raise Invalid("must be a path", value)
        if not value.startswith("/"):
            raise Invalid('must be a path that starts with "/"', value)
        if any(mark in "?#" or mark.isspace() or not mark.isprintable() for mark in value):
            raise Invalid('must be a path without "?", "#" and white space', value)
        return value


@dataclass(frozen=True)
class HeaderName(Rule):
    """The name of an HTTP header."""

    kind = "header name"

    def check(self, value: object) -> str:
        if not is_token(value):
            raise Invalid("must be a header name", value)
        return value


@dataclass(frozen=True)
class Network(Rule):
    """An address or a network; `*` for everybody, `unix` for peers without an address."""

    kind = "network"

    def check(self, value: object) -> str:
        if isinstance(value, str) and value in ("*", "unix"):
            return value
        try:
            if isinstance(value, str):
                return str(ipaddress.ip_network(value, strict=False))
        except ValueError:
            pass
        raise Invalid('must be an address, a network, "*" or "unix"', value)


@dataclass(frozen=True)
class Many(Rule):
    """A tuple of values that each keep to `item`; as text, separated by commas."""

    item: Rule
    noun: str
    separator = ","

    @property
    def kind(self) -> str:
        return f"list of {self.noun}"

    def check(self, value: object) -> tuple[Any, ...]:
        # A lone string would otherwise be taken as a list of its letters.
        if not isinstance(value, (list, tuple)):
            raise Invalid(f"must be a list of {self.noun}", value)
        return tuple(self._check_item(item) for item in value)

    def _check_item(self, item: object) -> Any:
        try:
            return self.item.check(item)
        except Invalid as error:
            rule = f"must be a list of {self.noun}, and each {error.rule}"
            raise Invalid(rule, error.value) from None

    def parse(self, text: str) -> object:
        if not text:
            return ()
        return tuple(self.item.parse(part.strip()) for part in text.split(self.separator))

    def text(self, value: tuple[Any, ...]) -> str:
        return self.separator.join(self.item.text(item) for item in value)


@dataclass(frozen=True)
class OrNone(Rule):
    """What `inner` allows, or None for "off"; as text `none` or `off`."""

    inner: Rule

    @property
    def kind(self) -> str:
        return f"{self.inner.kind} or None"

    def check(self, value: object) -> Any:
        if value is None:
            return None
        try:
            # A word that means "off" elsewhere would be a trap as a value here.
            if self.is_off(value):
                raise Invalid(f"must be a {self.inner.kind}", value)
            return self.inner.check(value)
        except Invalid as error:
            raise Invalid(f"{error.rule} or None", error.value) from None

    def parse(self, text: str) -> object:
        return None if self.is_off(text) else self.inner.parse(text)

    def text(self, value: object) -> str:
        return "none" if value is None else self.inner.text(value)

    @staticmethod
    def is_off(value: object) -> bool:
        """Tell whether `value` is a word for None, needed where a format has no null of its own."""
        return isinstance(value, str) and value.lower() in _OFF


@dataclass(frozen=True)
class Object(Rule):
    """Something only Python can hold, such as a callable; it has no text."""

    noun: str
    accepts: Callable[[object], bool]

    @property
    def kind(self) -> str:
        return self.noun

    def check(self, value: object) -> object:
        if not self.accepts(value):
            raise Invalid(f"must be a {self.noun}", value)
        return value


@dataclass(frozen=True)
class HeaderOr(Rule):
    """The name of a header, or something only Python can hold."""

    noun: str
    accepts: Callable[[object], bool]

    @property
    def kind(self) -> str:
        return f"header name or {self.noun}"

    def check(self, value: object) -> object:
        if self.accepts(value):
            return value
        try:
            return HeaderName().check(value)
        except Invalid:
            raise Invalid(f"must be a {self.kind}", value) from None

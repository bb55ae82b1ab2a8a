"""The base of the option classes: checks values, and remembers which were given."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable
from dataclasses import InitVar, dataclass, fields
from typing import Any, ClassVar, Self

from resilience_mw.config.option import Option, declared
from resilience_mw.config.wording import hint, likely, plain
from resilience_mw.exceptions import ConfigError


class _Itself:
    """Gives the instance itself, or None on the class.

    `dataclasses.replace` reads the old object's attributes and hands them to the constructor.
    This one tells the constructor which object it replaces, so that what was left out there is
    left out again instead of turning into a value that somebody gave.
    """

    def __get__(self, instance: Section | None, owner: type[Section]) -> Section | None:
        return instance


class _Signature:
    """The constructor's signature as people should see it: options only."""

    def __get__(self, instance: object, owner: type[Section]) -> inspect.Signature:
        whole = inspect.signature(owner.__init__)
        hidden = ("self", "_replaced")
        return whole.replace(parameters=[p for n, p in whole.parameters.items() if n not in hidden])


@dataclass(frozen=True, kw_only=True, repr=False)
class Section:
    """Options that belong together; subclasses are frozen dataclasses of `option()` fields.

    Every value is checked on construction, and `ConfigError` raised where it breaks its rule.
    `given` holds the names of the options somebody set, whether or not to the default value.
    With `dataclasses.replace` that is: given before, or another object than before.
    """

    section: ClassVar[str]
    __signature__: ClassVar[Any] = _Signature()

    _replaced: InitVar[Any] = _Itself()

    def __init_subclass__(cls, *, name: str = "") -> None:
        super().__init_subclass__()
        if name:
            cls.section = name

    def __new__(cls, *, _replaced: Section | None = None, **values: object) -> Self:
        known = options_of(cls)
        for name in values:
            if name not in known:
                raise unknown_option(f"{cls.section}.{name}", Section.__subclasses__())
        self = super().__new__(cls)
        given = frozenset(
            name
            for name, value in values.items()
            if _replaced is None or name in _replaced.given or value is not getattr(_replaced, name)
        )
        self.__dict__["given"] = given
        return self

    def __post_init__(self, _replaced: Section | None) -> None:
        options = options_of(type(self)).values()
        for option in options:
            if option.name in self.given:
                self.__dict__[option.name] = option.check(getattr(self, option.name))
        for option in options:
            if option.derive is not None and option.name not in self.given:
                self.__dict__[option.name] = option.derive(self)
        self._relate()

    @property
    def given(self) -> frozenset[str]:
        """The names of the options that were set explicitly."""
        given: frozenset[str] = self.__dict__["given"]
        return given

    def _relate(self) -> None:
        """Check the rules between options of this section."""

    def __repr__(self) -> str:
        names = [name for name in options_of(type(self)) if name in self.given]
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({values})"


def options_of(section: type[Section]) -> dict[str, Option]:
    """Return the options of a section by name, in the order of their declaration."""
    return {field.name: declared(section.section, field) for field in fields(section)}


def unknown_option(dotted: str, sections: Iterable[type[Section]]) -> ConfigError:
    """Return the error for a name that is no option, with what was meant or what there is."""
    known = _options(sections)
    own = [name for name in known if name.partition(".")[0] == dotted.partition(".")[0]]
    return _unknown(dotted, likely(dotted, known), own)


def unknown_section(name: str, sections: Collection[type[Section]]) -> ConfigError:
    """Return the error for a name that is no section: one misspelt, or an option without one."""
    known = [section.section for section in sections]
    if "." in name:
        return _unknown(name, likely(name.partition(".")[0], known), known)
    return _unknown(name, likely(name, [*known, *_options(sections)]), known)


def _options(sections: Iterable[type[Section]]) -> list[str]:
    return [option.dotted for section in sections for option in options_of(section).values()]


def _unknown(name: str, meant: str, known: Iterable[str]) -> ConfigError:
    message = f"unknown option {plain(name)}{hint(meant, known)}"
    return ConfigError(message, options=(name,), meant=meant)

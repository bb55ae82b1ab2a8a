"""The errors this package raises."""

from __future__ import annotations


class ConfigError(ValueError):
    """An option has a wrong value or a name we do not know.

    The message is one line: the option, the rule and the value, such as
    ``limit.max_concurrent_requests must be >= 0, got -1``.
    Where the value came from the environment, a flag or a settings file, the spelling used there
    comes first.

    `options` holds the dotted names of the options involved, for tools that point at them.
    `meant` is the nearest name there is, where a name was unknown, and empty otherwise.
    """

    def __init__(self, message: str, *, options: tuple[str, ...] = (), meant: str = "") -> None:
        super().__init__(message)
        self.options = options
        self.meant = meant


class KeywordError(ConfigError, TypeError):
    """A constructor does not know a keyword, or takes none of its arguments by position.

    Python's own error for either is a `TypeError`, and so is this one.
    """

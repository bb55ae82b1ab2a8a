"""One rule of a roll-out: which requests it is about, and who of them is let in first."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from ...exceptions import ConfigError
from ...keywords import strict
from ..tokens import is_token
from .hashing import place, places_of
from .paths import straight

By = Literal["server", "user", "request"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_HOST = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9_.-]+", re.IGNORECASE)
_PATH = re.compile(r"/.*", re.DOTALL)
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


@strict
@dataclass(frozen=True, slots=True)
class RolloutRule:
    """Which requests may go to the new stack, and how many of them do.

    Args:
        name: letters, digits, ``_``, ``.`` and ``-``. A store and the command line know the rule
            by it, and it decides who is let in first: never rename a rule that is under way.
        path: the exact path, decoded, below the mount point, as the app sees it.
        prefix: the beginning of it, in whole segments: ``/shop`` is ``/shop`` and all below
            ``/shop/``, but not ``/shopping``. ``/shop/`` is what is below, without ``/shop``.
        host: the host of the request, without a port; alone, or beside one of the two.
        methods: the methods the rule is about; none = all.
        percent: share of the new stack, 0 to 100 in steps of 0.01, while no store says otherwise.
        by: what is let in. ``"server"``: whole servers, by their name. ``"user"``: users, each of
            whom sees one stack. ``"request"``: each request by chance.
        cookie: the cookie that names a user, with ``by="user"``.
        header: the header that does; without either it is the client's address. A user without
            the cookie or header stays on the old stack until the share is 100.

    Raises:
        ConfigError: a value breaks its rule.

    Example:
        >>> rule = RolloutRule("favourites", path="/item_collect.htm", percent=2)
        >>> rule.matches("/item_collect.htm"), rule.matches("/ITEM_COLLECT.htm")
        (True, False)
    """

    name: str
    _: KW_ONLY
    path: str | None = None
    prefix: str | None = None
    host: str | None = None
    methods: Collection[str] = ()
    percent: float = 0.0
    by: By = "server"
    cookie: str | None = None
    header: str | None = None

    def __post_init__(self) -> None:
        name: object = self.name
        if not _is_text(name, _NAME):
            raise ConfigError(
                "RolloutRule name must be 1 to 64 letters, digits, '_', '.' or '-', not beginning "
                f"with one of the three, got {name!r:.80}"
            )
        self._check_target()
        self._check_methods()
        self._check("percent", "must be 0 to 100 in steps of 0.01", _is_percent(self.percent))
        by = 'must be "server", "user" or "request"'
        self._check("by", by, self.by in ("server", "user", "request"))
        for option in ("cookie", "header"):
            if getattr(self, option) is not None:
                self._check(option, 'needs by="user"', self.by == "user")
                right = is_token(getattr(self, option))
                self._check(option, "must be a name without blanks or separators", right)
        self._check("header", "must not be beside cookie", None in (self.cookie, self.header))

    def _check_target(self) -> None:
        self._check("path", "or prefix or host must be given", bool(self._targets()))
        self._check("prefix", "must not be beside path", None in (self.path, self.prefix))
        for option in {"path", "prefix"} & self._targets():
            value = getattr(self, option)
            self._check(option, "must begin with '/'", _is_text(value, _PATH))
            plain = "?" not in value and "#" not in value
            self._check(option, "must be a path without query and fragment", plain)
            decoded = _ESCAPE.search(value) is None
            self._check(option, "must be decoded, '/café' instead of '/caf%C3%A9'", decoded)
        if self.prefix is not None:
            self._check("prefix", "must have no empty or dotted segment", straight(self.prefix))
        if self.host is not None:
            right = _is_text(self.host, _HOST) and bool(self.host.strip("."))
            self._check("host", "must be a host name without a port", right)
            object.__setattr__(self, "host", self.host.lower().rstrip("."))

    def _targets(self) -> set[str]:
        return {name for name in ("path", "prefix", "host") if getattr(self, name) is not None}

    def _check_methods(self) -> None:
        methods: object = self.methods
        right = (
            isinstance(methods, Collection)
            and not isinstance(methods, str)
            and all(map(is_token, methods))
        )
        self._check("methods", "must be method names such as ('GET', 'HEAD')", right)
        object.__setattr__(self, "methods", tuple(method.upper() for method in self.methods))

    def _check(self, option: str, rule: str, right: bool) -> None:
        if not right:
            value = getattr(self, option)
            raise ConfigError(f"RolloutRule {self.name}: {option} {rule}, got {value!r:.80}")

    def matches(self, path: str, host: str | None = None, method: str = "GET") -> bool:
        """Return whether the rule is about such a request.

        Args:
            path: decoded, below the mount point.
            host: the ``Host`` header as it came.
            method: in upper case.
        """
        if self.methods and method not in self.methods:
            return False
        if self.host is not None and host_name(host) != self.host:
            return False
        if self.path is not None:
            return path == self.path
        prefix = self.prefix
        if prefix is not None:
            if not path.startswith(prefix):
                return False
            if not prefix.endswith("/") and path[len(prefix) : len(prefix) + 1] not in ("", "/"):
                return False
        return straight(path)

    def includes(self, key: str, percent: float | None = None) -> bool:
        """Return whether a share lets ``key`` in.

        Args:
            key: the name of a server or of a user.
            percent: the share; by default that of the rule.

        Raises:
            ConfigError: a value breaks its rule.
        """
        if not isinstance(key, str):
            raise ConfigError(f"RolloutRule {self.name}: key must be a text, got {key!r:.80}")
        if percent is not None and not _is_percent(percent):
            raise ConfigError(
                f"RolloutRule {self.name}: percent must be 0 to 100 in steps of 0.01, "
                f"got {percent!r:.80}"
            )
        return place(self.name, key) < places_of(self.percent if percent is None else percent)


def _is_text(value: object, form: re.Pattern[str]) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _is_percent(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        return False
    return abs(value * 100 - round(value * 100)) < 1e-6


def host_name(header: str | None) -> str:
    """Return the host of a ``Host`` header in lower case, without its port."""
    if not header:
        return ""
    host = header.lower()
    name, colon, port = host.rpartition(":")
    if colon and (port.isdigit() or not port) and (":" not in name or name.endswith("]")):
        host = name
    return host.rstrip(".")

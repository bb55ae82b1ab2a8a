"""What a front proxy has to do: the rules, the shares in force, and the two stacks."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...config.wording import show
from ...core.rollout import RolloutRule, Share
from ...core.rollout.hashing import PLACES, place, places_of
from ...core.rollout.paths import straight
from ...exceptions import ConfigError

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")

ODD = (
    r"^[^?]*(//|/\.{1,2}([/;?]|$)|\\|"
    r"%(2[def]|5[cf]|[46][1-9a-f]|[57][0-9a]|3[0-9]|[01][0-9a-f]|7f))"
)
"""A request target whose path a proxy and an app may read differently, in any case of letters:
what `resilience_mw.core.rollout.paths` leaves with the old stack."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One roll-out, ready to be written down for a front proxy.

    Args:
        rules: in order; the first that is about a request decides.
        shares: those in force; a rule without one has its own percentage.
        old: ``host:port`` of the old stack.
        new: of the new one.
        server_name: whose front proxy it is, for rules by server; ``None`` = one file for the
            proxies of all servers, each of which draws by the name of its host.
        name: with which all names in the configuration begin.
        notes: lines of comment for its head.

    Raises:
        ConfigError: an address, or a name, is none; both addresses are one; or a rule cannot be
            written down.
    """

    rules: Sequence[RolloutRule]
    shares: Mapping[str, Share]
    old: str
    new: str
    server_name: str | None
    name: str = "resilience"
    notes: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "old", address("old", self.old))
        object.__setattr__(self, "new", address("new", self.new))
        if self.old == self.new:
            raise ConfigError(f"new must be another address than old, got {show(self.new)} twice")
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"name must be up to 31 of a-z, 0-9 and '_', a letter first, got {show(self.name)}"
            )
        for rule in self.rules:
            for path in filter(None, (rule.path, rule.prefix)):
                if not (path.isprintable() and straight(path)):
                    raise ConfigError(
                        f"rule {rule.name}: a front proxy can match no path with empty or dotted "
                        f"segments, backslashes or control characters, got {show(path)}"
                    )
            if rule.header is not None and not re.fullmatch(r"[A-Za-z0-9-]+", rule.header):
                raise ConfigError(
                    f"rule {rule.name}: a front proxy passes no header with other signs than "
                    f"letters, digits and '-', got {show(rule.header)}"
                )

    def percent(self, rule: RolloutRule) -> float:
        """Return the share of a rule in force; 0 while it is held."""
        share = self.shares.get(rule.name)
        if share is None:
            return rule.percent
        return 0.0 if share.held else share.percent

    def places(self, rule: RolloutRule) -> int:
        """Return how many of 10,000 requests, users or servers of a rule the new stack gets.

        All or none, by server, where that is known: it is among those let in, or it is not.
        """
        places = places_of(self.percent(rule))
        if rule.by == "server" and self.server_name is not None:
            return PLACES if place(rule.name, self.server_name) < places else 0
        return places

    def remarks(self, rule: RolloutRule) -> list[str]:
        """Return what is to be said of a rule: its share, and where the proxy's ways differ."""
        share = f"{self.percent(rule):.2f}".rstrip("0").rstrip(".")
        held = self.shares.get(rule.name)
        state = " (held at 0 by the guard)" if held is not None and held.held else ""
        first = f"{rule.name}: {share} % by {rule.by}{state}."
        if rule.by == "server" and self.server_name is not None:
            let_in = "is" if self.places(rule) else "is not"
            return [first, f"The server {show(self.server_name)} {let_in} among them."]
        if rule.by == "request" or self.places(rule) in (0, PLACES):
            return [first]
        lines = [
            first,
            f"The proxy's hash is not ours: the share is the same, but other {rule.by}s are in it,",
            "and some change sides, once, when the split moves to the proxy.",
        ]
        if rule.by == "user" and rule.cookie is None and rule.header is None:
            lines.append("By the address of whoever is connected: behind another proxy, have this")
            lines.append("one take the client's from it first.")
        return lines


def address(option: str, text: str) -> str:
    """Return ``host:port`` without a scheme.

    Raises:
        ConfigError: it is nothing of the kind.
    """
    bare = text.removeprefix("http://").removesuffix("/")
    host, _, port = bare.rpartition(":")
    if port.isascii() and port.isdigit() and 0 < int(port) < 65536 and _is_host(host):
        return f"{host}:{int(port)}"
    raise ConfigError(f"{option} must be host:port, got {show(text)}")


def listener(text: str) -> str:
    """Return where a front proxy listens: a port, or ``host:port``.

    Raises:
        ConfigError: it is neither.
    """
    try:
        whole = address("listen", f"any:{text}" if text.isdigit() else text)
    except ConfigError:
        raise ConfigError(f"listen must be PORT or HOST:PORT, got {show(text)}") from None
    return whole.removeprefix("any:")


def _is_host(host: str) -> bool:
    if host.startswith("[") and host.endswith("]"):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            return False
        return True
    return _HOST.fullmatch(host) is not None


def covers(rule: RolloutRule, path: str) -> bool:
    """Whether a rule may be about a path, as far as the path decides."""
    if rule.path is not None:
        return rule.path == path
    prefix = rule.prefix
    if prefix is None or prefix == path:
        return True
    return path.startswith(prefix if prefix.endswith("/") else f"{prefix}/")

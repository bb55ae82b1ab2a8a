"""The options of a `RolloutMiddleware`, checked, and what is made of them for both protocols."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..config.wording import show
from ..core.rollout import RolloutGuard, RolloutPolicy, RolloutRule
from ..core.tokens import is_token
from ..exceptions import ConfigError
from ..interface import Interface
from ..signals.proxies import TrustedProxies
from .clients import Clients
from .link import StoreLink
from .stack import check_old, new_stack
from .stores import Store, open_store
from .testers import Testers, checked_secret


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutOptions:
    """The options of a `RolloutMiddleware`; see there.

    Raises:
        ConfigError: a value breaks its rule.
    """

    new: Any
    rules: Sequence[RolloutRule]
    server_name: str | None = None
    store: str | Store | None = None
    guard: bool | RolloutGuard = True
    fallback: bool = False
    variant_header: str | None = None
    tester_header: str | None = None
    tester_cookie: str | None = None
    tester_secret: str | None = None
    trusted_proxies: Sequence[str] = ()

    def __post_init__(self) -> None:
        name: object = self.server_name
        if name is not None and not (isinstance(name, str) and name.strip()):
            raise ConfigError(f"server_name must be a text that is not empty, got {show(name)}")
        guard: object = self.guard
        if not isinstance(guard, bool | RolloutGuard):
            raise ConfigError(f"guard must be True, False or a RolloutGuard, got {show(guard)}")
        fallback: object = self.fallback
        if not isinstance(fallback, bool):
            raise ConfigError(f"fallback must be True or False, got {show(fallback)}")
        for option in ("variant_header", "tester_header", "tester_cookie"):
            value = getattr(self, option)
            if value is not None and not is_token(value):
                raise ConfigError(
                    f"{option} must be a name without blanks or separators, got {show(value)}"
                )
        if self.tester_cookie is not None:
            checked_secret(self.tester_secret)
        elif self.tester_secret is not None:
            raise ConfigError(
                "tester_cookie must be the name of the cookie that tester_secret signs, got none"
            )
        if self.tester_header is not None and not self.trusted_proxies:
            raise ConfigError(
                "trusted_proxies must name whose tester_header counts, got none: anybody can "
                "send a header"
            )


class Assembly:
    """A policy, and what keeps it at the shares of a store.

    Args:
        app: the old app.
        options: of the middleware.
        interface: what its app speaks.

    Raises:
        ConfigError: a value breaks its rule.
    """

    def __init__(self, app: Any, options: RolloutOptions, interface: Interface) -> None:
        check_old(app, interface)
        proxies = _proxies(options.trusted_proxies)
        clients = Clients(proxies)
        testers = None
        if options.tester_header is not None or options.tester_cookie is not None:
            testers = Testers(
                header=options.tester_header,
                trusted=clients.trusted,
                cookie=options.tester_cookie,
                secret=options.tester_secret or "",
            )
        guard = options.guard
        self.new = new_stack(
            options.new,
            interface,
            raises=options.fallback,
            trusted_proxies=tuple(options.trusted_proxies),
        )
        self.policy = RolloutPolicy(
            options.rules,
            server_name=options.server_name or socket.gethostname(),
            address=clients.address,
            testers=testers,
            guard=RolloutGuard() if guard is True else guard or None,
            now=time.monotonic(),
            tell=lambda rule, why: self.link.take_back(rule, why),
        )
        self.link = StoreLink(
            self.policy, None if options.store is None else open_store(options.store)
        )


def _proxies(networks: object) -> TrustedProxies:
    if isinstance(networks, str | bytes) or not isinstance(networks, Sequence):
        raise ConfigError(f"trusted_proxies must be a list of networks, got {show(networks)}")
    for network in networks:
        try:
            # To the library a number is an address, too.
            TrustedProxies((network if isinstance(network, str) else "",))
        except ValueError:
            raise ConfigError(
                f"trusted_proxies must be addresses, networks, '*' or 'unix', got {show(network)}"
            ) from None
    return TrustedProxies(tuple(networks))

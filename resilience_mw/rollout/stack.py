"""From what a person wrote as ``new`` to an app."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Sequence
from typing import Any

from ..config.wording import one_line, plain, show
from ..exceptions import ConfigError
from ..interface import Interface, as_asgi3, interface_of

_IMPORT = re.compile(r"[\w.]+:[\w.]+")
_ADDRESS = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}/?")


def new_stack(
    new: Any, interface: Interface, *, raises: bool, trusted_proxies: Sequence[str]
) -> Any:
    """Return the new stack as an app.

    Args:
        new: an app, ``module:app``, or the ``http://host:port`` of a process that is one.
        interface: what the old app speaks.
        raises: have a proxy raise where another app may still be asked.
        trusted_proxies: whose ``X-Forwarded-*`` a proxy passes on.

    Raises:
        ConfigError: it is none of these, speaks another protocol, or cannot be imported.
    """
    if isinstance(new, str):
        if is_url(new):
            return _proxy(new, interface, raises=raises, trusted_proxies=trusted_proxies)
        new = _imported(new)
    try:
        found = interface_of(new)
    except ConfigError:
        if not callable(new):
            raise ConfigError(
                f'new must be an app, "module:app" or "http://host:port", got {show(new)}'
            ) from None
        found = interface  # its signature does not tell
    if found != interface:
        kind = interface.upper()
        raise ConfigError(f"new must speak {kind} as the old app does, got {show(new)}")
    return as_asgi3(new) if interface == "asgi" else new


def check_old(app: Any, interface: Interface) -> None:
    """Check that the old app is one, of the right protocol as far as it tells.

    Raises:
        ConfigError: it is not.
    """
    try:
        found = interface_of(app)
    except ConfigError:
        if not callable(app):
            raise
        return
    if found != interface:
        other = f"resilience_mw.{found}.RolloutMiddleware is for {found.upper()}"
        raise ConfigError(f"app must speak {interface.upper()}, got {show(app)}; {other}")


def is_url(new: Any) -> bool:
    """Return whether ``new`` is the address of a process."""
    return isinstance(new, str) and new.lower().startswith(("http://", "https://"))


def _proxy(url: str, interface: Interface, **options: Any) -> Any:
    if interface == "asgi":
        from .proxy.asgi import proxy as asgi_proxy

        proxy: Any = asgi_proxy
    else:
        from .proxy.wsgi import proxy as wsgi_proxy

        proxy = wsgi_proxy
    try:
        return proxy(url, **options)
    except ConfigError as error:
        # To who reads it, the option is the one that they gave.
        told = str(error)
        raise ConfigError(f"new {told[4:]}" if told.startswith("url ") else told) from None


def _imported(text: str) -> Any:
    if _ADDRESS.fullmatch(text) or not _IMPORT.fullmatch(text):
        hint = f"; did you mean {show(f'http://{text}')}?" if _ADDRESS.fullmatch(text) else ""
        raise ConfigError(
            f'new must be an app, "module:app" or "http://host:port", got {show(text)}{hint}'
        )
    try:
        return pkgutil.resolve_name(text)
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 200)
        raise ConfigError(f"new could not be loaded from {plain(text)}: {reason}") from error

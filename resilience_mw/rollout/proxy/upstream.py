"""Where the upstream is and what it may cost: the options that both proxies take."""

from __future__ import annotations

import math
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict
from urllib.parse import urlsplit

from ...config.wording import show
from ...core.tokens import is_token
from ...exceptions import ConfigError
from ...signals.proxies import TrustedProxies

_PORTS = {"http": 80, "https": 443}


class Options(TypedDict, total=False):
    """What `proxy` takes beside the URL.

    Attributes:
        timeout: seconds from the last byte of the request until the response must have begun; the
            request's own deadline (`resilience_mw.remaining`) shortens it. Default 30.
        connect_timeout: seconds for a connection, and for a free one if all are taken. Default 2.
        idle_timeout: seconds for which the upstream may stand still in the middle of a body, taking
            none of the request's or sending none of the response's; ``None`` = for ever.
            Default 60.
        max_connections: to the upstream, for each process (and each event loop). Default 100.
        keep_alive: seconds for which an unused connection is kept. Below the upstream's own
            keep-alive, or a request now and then meets a connection that is being closed.
            Default 1, since Gunicorn's is 2 and Uvicorn's 5.
        verify: whom to trust for ``https``. Default: the system's authorities.
        trusted_proxies: peers (addresses, networks, ``*`` or ``unix``) whose
            ``X-Forwarded-Proto``, ``-Host`` and the like are passed on instead of what the server
            sees. Default: none.
        deadline_header: name of a request header that tells the upstream how many seconds are left
            of the request's deadline, for its own ``deadline.header``. Default: none.
        raises: raise `UpstreamUnreachable` instead of answering 502, 503 or 504, where another app
            may still be asked: the method is GET, HEAD or OPTIONS. Default false.
    """

    timeout: float
    connect_timeout: float
    idle_timeout: float | None
    max_connections: int
    keep_alive: float
    verify: ssl.SSLContext | None
    trusted_proxies: Sequence[str]
    deadline_header: str | None
    raises: bool


@dataclass(frozen=True, slots=True)
class Upstream:
    """An upstream, checked."""

    url: str
    scheme: bytes
    host: bytes
    port: int
    timeout: float
    connect_timeout: float
    idle_timeout: float | None
    max_connections: int
    keep_alive: float
    verify: ssl.SSLContext | None
    trusted: TrustedProxies
    deadline_header: bytes | None
    raises: bool

    @property
    def authority(self) -> bytes:
        """Host and port as a Host header has them."""
        host = b"[%s]" % self.host if b":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme.decode()] else b"%s:%d" % (host, self.port)


def upstream(
    url: str,
    *,
    timeout: float = 30.0,
    connect_timeout: float = 2.0,
    idle_timeout: float | None = 60.0,
    max_connections: int = 100,
    keep_alive: float = 1.0,
    verify: ssl.SSLContext | None = None,
    trusted_proxies: Sequence[str] = (),
    deadline_header: str | None = None,
    raises: bool = False,
) -> Upstream:
    """Check what `proxy` was given; see `Options`.

    Raises:
        ConfigError: one of the values is wrong.
    """
    scheme, host, port = _split(url)
    _seconds("timeout", timeout)
    _seconds("connect_timeout", connect_timeout)
    if idle_timeout is not None:
        _seconds("idle_timeout", idle_timeout)
    _seconds("keep_alive", keep_alive, least=0.0)
    if type(max_connections) is not int or max_connections < 1:
        raise ConfigError(f"max_connections must be an integer >= 1, got {show(max_connections)}")
    if not isinstance(verify, (ssl.SSLContext, type(None))):
        raise ConfigError(f"verify must be an ssl.SSLContext or None, got {show(verify)}")
    try:
        trusted = TrustedProxies(trusted_proxies)
    except ValueError as error:
        raise ConfigError(str(error).partition(".")[2]) from None
    if deadline_header is not None and not is_token(deadline_header):
        raise ConfigError(f"deadline_header must be a header's name, got {show(deadline_header)}")
    return Upstream(
        url=url,
        scheme=scheme.encode(),
        host=host.encode(),
        port=port,
        timeout=timeout,
        connect_timeout=connect_timeout,
        idle_timeout=idle_timeout,
        max_connections=max_connections,
        keep_alive=keep_alive,
        verify=verify,
        trusted=trusted,
        deadline_header=None if deadline_header is None else deadline_header.lower().encode(),
        raises=raises,
    )


def _split(url: str) -> tuple[str, str, int]:
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode()
    except (ValueError, AttributeError, TypeError):
        raise ConfigError(f"url must be http(s)://host:port, got {show(url)}") from None
    more = parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in _PORTS or not host or more or port == 0:
        raise ConfigError(
            f"url must be http(s)://host:port without a path, a query or a password, "
            f"got {show(url)}"
        )
    return parts.scheme, host, port or _PORTS[parts.scheme]


def _seconds(name: str, value: Any, least: float | None = None) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and math.isfinite(value) and (value > 0.0 if least is None else value >= least):
        return
    rule = "> 0" if least is None else f">= {least:g}"
    raise ConfigError(f"{name} must be seconds {rule}, got {show(value)}")


def need_httpx() -> None:
    """Check that the extra is installed.

    Raises:
        ConfigError: it is not.
    """
    try:
        import httpcore  # noqa: F401
    except ImportError:
        raise ConfigError(
            "a proxy to an upstream needs httpx: pip install 'resilience-mw[proxy]'"
        ) from None

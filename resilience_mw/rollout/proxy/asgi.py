"""An ASGI app that is answered by a process elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from .upstream import Options, need_httpx

if TYPE_CHECKING:
    from .asgi_proxy import ASGIProxy


def proxy(url: str, **options: Unpack[Options]) -> ASGIProxy:
    """Return an ASGI app that passes its requests on to ``url`` and the responses back.

    Both bodies are streamed. Nothing is followed, decoded, cached or sent twice, and no cookie is
    kept. The client's Host, path and query stay as they are.

    Args:
        url: ``http://host:port`` or ``https://host:port``.
        **options: see `Options`.

    Raises:
        ConfigError: a value is wrong, or httpx is not installed.

    Example:
        >>> app = proxy("http://127.0.0.1:6001", timeout=10)
    """
    need_httpx()
    from .asgi_proxy import ASGIProxy

    return ASGIProxy(url, **options)

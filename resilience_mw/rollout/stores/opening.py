"""From the text of an option to a store."""

from __future__ import annotations

from ...config.wording import show
from ...exceptions import ConfigError
from .base import Store

REDIS = {
    "redis": "redis",
    "rediss": "rediss",
    "unix": "unix",
    "valkey": "redis",
    "valkeys": "rediss",
}
"""Our schemes for Redis and Valkey, and how the client spells each."""


def open_store(url: str | Store) -> Store:
    """Return the store that a text names; nothing is read or connected yet.

    Args:
        url: ``file:/etc/shop/rollout.toml`` or ``.json``; or
            ``redis://[[user]:password@]host[:port][/database]``, ``rediss://`` (TLS),
            ``unix:///run/redis.sock?db=0``, ``valkey://`` and ``valkeys://``, where
            ``?prefix=shop`` keeps two apps on one server apart. A store is returned as it is.

    Raises:
        ConfigError: it names no store, or the package for it is not installed.
    """
    if isinstance(url, Store):
        return url
    scheme, colon, rest = str(url).partition(":")
    if colon and scheme == "file":
        from .file import FileStore

        return FileStore(_path(rest, url))
    if colon and scheme in REDIS:
        from .redis import RedisStore

        return RedisStore(f"{REDIS[scheme]}:{rest}")
    # A text without a known scheme may still have a password in it.
    what = show(f"{scheme}:..." if colon else url)
    raise ConfigError(
        f"store must be file:PATH.toml, file:PATH.json or redis://HOST:PORT/DB, got {what}"
    )


def _path(rest: str, url: str) -> str:
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise ConfigError(f"store must be file:PATH or file:///PATH, got {show(url)}")
    return slash + path

"""A store in Redis or Valkey: one for all servers, where the file is one for a server.

Needs the extra `redis`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ...config.wording import one_line, plain, show
from ...core.rollout import Share
from ...exceptions import ConfigError
from .base import (
    KEPT,
    Change,
    Decide,
    Store,
    StoreError,
    Unanswered,
    checked_percent,
    checked_rule,
    shown_percent,
)

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError
    from redis.retry import Retry
except ModuleNotFoundError as missing:
    raise ConfigError(
        "a store in Redis needs redis: pip install 'resilience-mw[redis]'"
    ) from missing

PREFIX = "resilience_mw:rollout"

CONNECT_TIMEOUT = 1.0
"""Seconds to connect; the URL's ``socket_connect_timeout`` may set others."""

TIMEOUT = 0.5
"""Seconds for an answer; the URL's ``socket_timeout`` may set others."""

TRIES = 100
"""Times to begin again because somebody else changed the same rule between two steps."""

HELD = "0 held"

SILENCE = ("timeout", "connection lost")

SWAP = """
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
if ARGV[6] == 'back' then redis.call('LTRIM', KEYS[2], 0, ARGV[5] - 1) end
redis.call('LPUSH', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('LTRIM', KEYS[2], 0, ARGV[5] - 1)
return 1
"""
"""Swaps one share if it is still the expected one, and records it.

A server that is out of memory refuses a script's first write if it may grow. A trim may not, and
what comes after it is let pass: the way back works on a full server, the way up does not.
"""

T = TypeVar("T")


class RedisStore(Store):
    """Shares in a hash and their history in a list: ``resilience_mw:rollout:shares``, ``:history``.

    A process asks four times a second on one connection of its own. A change is one script,
    so that it is whole or not at all.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``, as the client reads it; besides, the query
            may have ``prefix=...``, which takes the place of ``resilience_mw:rollout``.

    Raises:
        ConfigError: it is no such URL.
    """

    def __init__(self, url: str) -> None:
        self._url, prefix = _without_prefix(url)
        # In braces, so that both keys are on one node of a cluster.
        self._keys = (f"{{{prefix}}}:shares", f"{{{prefix}}}:history")
        self._client: Any = None
        try:
            pool = self._connected().connection_pool
            pool.make_connection()  # makes the object, and finds an option that is none
        except (ValueError, TypeError, AttributeError, RedisError):
            # The client's own words may quote a part of a password with a slash in it.
            raise _wrong_option(url) or _wrong(url) from None
        where = pool.connection_kwargs
        if "path" in where:
            name = f"unix:{plain(str(where['path']))}"
        else:
            host, port = where.get("host") or "localhost", where.get("port") or 6379
            scheme = url.partition(":")[0]
            name = f"{scheme}://{plain(str(host))}:{port}/{where.get('db') or 0}"
        # Another prefix is another store, and to mistype it must not look like the right one.
        self.name = name if prefix == PREFIX else f"{name}?prefix={plain(prefix)}"

    def load(self) -> Mapping[str, Share]:
        found: Mapping[str, str] = self._ask(lambda client: client.hgetall(self._keys[0]))
        shares, wrong = {}, None
        for rule, text in found.items():
            try:
                shares[rule] = self._share(rule, text)
            except StoreError as error:
                wrong = error
        if wrong is not None:
            # Each share is changed by itself here: a way back must not depend on the others.
            wrong.readable = shares
            raise wrong
        return shares

    def history(self, limit: int = 20) -> Sequence[Change]:
        if limit < 1:
            return ()
        lines: Sequence[str] = self._ask(lambda client: client.lrange(self._keys[1], 0, limit - 1))
        changes = []
        for line in lines:
            try:
                changes.append(Change.from_dict(json.loads(line)))
            except (ValueError, TypeError, KeyError):
                continue
        return tuple(changes)

    def transact(self, rule: str, decide: Decide, who: str, why: str) -> Change | None:
        for _ in range(TRIES):
            text = self._ask(lambda client: client.hget(self._keys[0], rule))
            before = None if text is None else self._share(rule, text)
            after = decide(before)
            if after is None:
                return None
            change = Change(time.time(), who, rule, before, after, why)
            record = json.dumps(change.to_dict(), ensure_ascii=False)
            way = "back" if after.percent <= (before.percent if before else 0.0) else "up"
            swap = (SWAP, 2, *self._keys, rule, text or "", _text(after), record, KEPT, way)
            if self._ask(partial(_evaluate, arguments=swap)):
                return change
        raise StoreError(f"{self.name} cannot be changed: {TRIES} others were faster")

    def why_empty(self) -> str:
        return f"no such key: {plain(self._keys[0])}"

    def after_fork(self) -> None:
        # The sockets are the parent's; the client itself sees that, and leaves them open.
        self._client = None

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> Any:
        client = self._client
        if client is None:
            client = self._client = redis.Redis.from_url(
                self._url,
                decode_responses=True,
                encoding_errors="replace",
                socket_connect_timeout=CONNECT_TIMEOUT,
                socket_timeout=TIMEOUT,
                # The follower asks again by itself, and a change must not be made twice.
                retry=Retry(NoBackoff(), 0),
                protocol=2,
            )
        return client

    def _ask(self, question: Callable[[Any], T]) -> T:
        try:
            return question(self._connected())
        except (RedisError, OSError) as error:
            reason = _reason(error)
            kind = Unanswered if reason in SILENCE else StoreError
            raise kind(f"{self.name} cannot be used: {reason}") from error

    def _share(self, rule: str, text: str) -> Share:
        try:
            checked_rule(rule)
            return Share(0.0, held=True) if text == HELD else Share(checked_percent(float(text)))
        except ValueError:
            raise StoreError(
                f"{self.name} has no share for rule {plain(rule)}: got {show(text)}"
            ) from None


def _evaluate(client: Any, arguments: tuple[object, ...]) -> Any:
    return client.eval(*arguments)


def _text(share: Share) -> str:
    return HELD if share.held else shown_percent(share.percent)


def _without_prefix(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        database = parts.path.strip("/")
        fits = parts.port is None or parts.port > 0
    except ValueError:
        raise _wrong(url) from None
    if parts.scheme != "unix":
        fits = fits and (not database or database.isdecimal())
    if not fits or parts.fragment or not url.startswith(f"{parts.scheme}://"):
        raise _wrong(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    prefix = query.pop("prefix", PREFIX)
    if not 0 < len(prefix) <= 100 or not prefix.isprintable() or set("{}") & set(prefix):
        raise ConfigError(
            f"store prefix must be 1 to 100 printable characters without braces, got {show(prefix)}"
        )
    options = f"?{urlencode(query, quote_via=quote)}" if query else ""
    return url.partition("?")[0] + options, prefix


def _wrong(url: str) -> ConfigError:
    scheme = url.partition(":")[0]
    form = "unix://PATH?db=0" if scheme == "unix" else f"{scheme}://[[USER]:PASSWORD@]HOST:PORT/DB"
    return ConfigError(f"store must be {form}, and its options the client's, got '{scheme}:...'")


def _wrong_option(url: str) -> ConfigError | None:
    """Return what is wrong with the first option that the client does not take by itself."""
    parts = urlsplit(url)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name == "prefix":
            continue
        alone = f"{parts.scheme}://localhost/0?{urlencode({name: value}, quote_via=quote)}"
        try:
            redis.ConnectionPool.from_url(alone).make_connection()
        except ValueError:
            return ConfigError(f"store has a wrong value for {plain(name)}, got {show(value)}")
        except (TypeError, AttributeError, RedisError):
            # Its value stays unsaid: it may be a password under a mistyped name.
            return ConfigError(f"store has an option that the client has not, got {plain(name)}")
    return None


def _reason(error: Exception) -> str:
    """Return few words, the client's own only where the server has spoken."""
    text = one_line(str(error), 120)
    for kind, words in (
        (redis.AuthenticationError, "wrong user or password"),
        (redis.exceptions.NoPermissionError, "this user may not"),
        (redis.BusyLoadingError, "still loading its data"),
        (redis.exceptions.OutOfMemoryError, "out of memory"),
        (redis.ReadOnlyError, "a replica, which only reads"),
        (redis.TimeoutError, SILENCE[0]),
    ):
        if isinstance(error, kind):
            return words
    if "OOM command" in text:  # from within a script, older servers wrap it
        return "out of memory"
    if isinstance(error, redis.ResponseError):
        return text
    cause = error.__cause__ or error.__context__ or error
    if isinstance(cause, ConnectionRefusedError):
        return "refused"
    if isinstance(cause, TimeoutError):
        return SILENCE[0]
    lost = ConnectionResetError | BrokenPipeError | ConnectionAbortedError
    if isinstance(cause, OSError) and cause.strerror and not isinstance(cause, lost):
        return cause.strerror.lower()
    return SILENCE[1]

"""Who may choose the stack: a header set by a proxy of ours, or a cookie that we signed."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable

from ..core.exchange import Exchange
from ..core.rollout.keys import cookie
from ..exceptions import ConfigError

LEAST_SECRET = 16
"""Characters of a secret, at least: a shorter one can be found by trying."""

_WHO = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EXPIRES = re.compile(r"[0-9]{1,12}")

NEW = frozenset(("new", "1", "true", "yes", "on"))
OLD = frozenset(("old", "0", "false", "no", "off"))


def sign_tester(secret: str, who: str, expires: float) -> str:
    """Return the value of a tester's cookie: who, until when, and a signature over both.

    Args:
        secret: the ``tester_secret`` of the middleware, at least 16 characters.
        who: 1 to 64 letters, digits, ``_`` and ``-``; it is part of the cookie, for people to read.
        expires: seconds since the epoch after which it is worth nothing.

    Raises:
        ConfigError: a value breaks its rule.

    Example:
        >>> sign_tester("correct horse battery", "ann", 4102444800)[:14]
        'ann.4102444800'
    """
    checked_secret(secret)
    name: object = who
    if not (isinstance(name, str) and _WHO.fullmatch(name)):
        raise ConfigError(f"who must be 1 to 64 letters, digits, '_' or '-', got {who!r:.80}")
    end: object = expires
    number = isinstance(end, int | float) and not isinstance(end, bool)
    if not (number and time.time() < end < 1e12):  # type: ignore[operator]  # nor is it nan
        raise ConfigError(
            f"expires must be seconds since the epoch, in the future, got {expires!r:.80}"
        )
    until = str(int(expires))
    return f"{who}.{until}.{_signature(secret, who, until)}"


def checked_secret(secret: object) -> str:
    """Return a secret that is long enough, or raise `ConfigError`, which does not show it."""
    if not isinstance(secret, str) or len(secret) < LEAST_SECRET:
        raise ConfigError(f"tester_secret must be a text of at least {LEAST_SECRET} characters")
    return secret


def _signature(secret: str, who: str, until: str) -> str:
    message = f"resilience_mw tester {who}.{until}".encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


class Testers:
    """Tells which requests are a tester's, and which stack they ask for.

    Args:
        header: the name of a header in which a proxy of ours says ``new``, ``old``, or for which
            rules, by name, it shall be the new one.
        trusted: whether a request comes from such a proxy; from anybody else the header is ignored.
        cookie: the name of a cookie that holds what `sign_tester` returned.
        secret: what that was signed with.
        clock: seconds since the epoch.
    """

    __test__ = False  # for pytest, which looks for classes of this name

    def __init__(
        self,
        *,
        header: str | None = None,
        trusted: Callable[[Exchange], bool],
        cookie: str | None = None,
        secret: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._header = header
        self._trusted = trusted
        self._cookie = cookie
        self._secret = secret
        self._clock = clock

    def __call__(self, exchange: Exchange, rule: str) -> bool | None:
        """Return whether a tester wants the new stack (or the old); ``None`` = no tester."""
        if self._header is not None:
            wish = exchange.header(self._header)
            if wish is not None and self._trusted(exchange):
                names = {name.strip().lower() for name in wish.split(",")}
                if names <= OLD:
                    return False
                if names & NEW or rule.lower() in names:
                    return True
        if self._cookie is not None:
            token = cookie(exchange, self._cookie)
            if token is not None and self._signed(token):
                return True
        return None

    def _signed(self, token: str) -> bool:
        who, _, rest = token.partition(".")
        until, _, signature = rest.partition(".")
        if not (_WHO.fullmatch(who) and _EXPIRES.fullmatch(until) and signature.isascii()):
            return False
        right = hmac.compare_digest(signature, _signature(self._secret, who, until))
        return right and self._clock() < int(until)

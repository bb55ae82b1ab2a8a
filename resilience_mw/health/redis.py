"""Whether a Redis server answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from ..config.wording import masked, show
from ..exceptions import ConfigError
from .check import Check, CheckFailed
from .connecting import reason_for
from .extras import require
from .keywords import CheckOptions

if TYPE_CHECKING:
    from redis import Redis


class RedisCheck(Check):
    """Send PING through a connection of its own, and close it.

    The `redis` package makes the connection, so its URLs mean here what they mean to the app, but
    the app's pool has no part in it. There are no retries: the next interval is one.

        RedisCheck("redis://:secret@cache.internal:6379/0")

    Args:
        url: ``redis://``, ``rediss://`` (TLS) or ``unix://``, as `redis.Redis.from_url` takes it.
        timeout: seconds; also that of each step of the connection, unless the URL sets one.
        options: those of `Check`.

    Reasons of failure: ``timeout``, ``refused``, ``dns``, ``unreachable``, ``no socket``,
    ``closed``, ``certificate``, ``tls``, ``authentication``, ``loading``, ``error``.

    Raises:
        ConfigError: the package is missing, or an argument breaks its rule.
    """

    def __init__(self, url: str, timeout: float = 1.0, **options: Unpack[CheckOptions]) -> None:
        super().__init__(self._ask, timeout=timeout, **options)
        require("redis", "RedisCheck", "resilience-mw[redis]")
        self._url = url
        self._subject = masked(str(url)).partition("?")[0]
        try:
            client = self._client()
            # Connections are made of the URL's options now and connect later: a wrong one shows.
            client.connection_pool.make_connection()
            client.close()
        except (ValueError, TypeError, AttributeError):
            raise ConfigError(
                f"RedisCheck url must be redis://host:port/db, rediss:// or unix://, "
                f"got {show(str(url))}"
            ) from None

    def _client(self) -> Redis:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        return Redis.from_url(
            self._url,
            socket_timeout=self.timeout,
            socket_connect_timeout=self.timeout,
            retry=Retry(NoBackoff(), 0),
        )

    def _ask(self) -> None:
        from redis import exceptions

        client = self._client()
        try:
            client.ping()
        except (exceptions.AuthenticationError, exceptions.AuthorizationError):
            raise CheckFailed("authentication") from None
        except exceptions.NoPermissionError:
            pass  # a user who may not PING has been let in by a server that answers
        except exceptions.BusyLoadingError:
            raise CheckFailed("loading") from None
        except exceptions.TimeoutError:
            raise CheckFailed("timeout") from None
        except exceptions.ConnectionError as error:
            cause = error.__cause__ or error.__context__
            reason = reason_for(cause) if isinstance(cause, OSError) else "closed"
            raise CheckFailed(reason) from None
        except exceptions.RedisError:
            raise CheckFailed("error") from None
        finally:
            client.close()

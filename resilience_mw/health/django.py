"""Whether a database that Django knows answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Unpack

from ..config.wording import show
from ..exceptions import ConfigError
from .check import Check, CheckFailed
from .extras import require
from .keywords import CheckOptions

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

_CONNECT_TIMEOUT = ("postgresql", "mysql")


class DjangoDatabaseCheck(Check):
    """Open a connection of its own to one of Django's databases, ask for 1, and close it.

    The connection is none of the threads' persistent ones, and none of a pool
    (``"OPTIONS": {"pool": ...}``) either: those may all be taken while the database is well.

        DjangoDatabaseCheck("default", interval=10)

    Args:
        alias: key of ``DATABASES``.
        timeout: seconds; rounded up, also the driver's ``connect_timeout`` on PostgreSQL and
            MySQL, unless the settings name one.
        options: those of `Check`.

    Reasons of failure: ``unavailable`` (the driver refused or lost the connection),
    ``unknown alias``, ``not configured``.

    Raises:
        ConfigError: Django is missing, or has no such database.
    """

    def __init__(
        self, alias: str = "default", timeout: float = 1.0, **options: Unpack[CheckOptions]
    ) -> None:
        super().__init__(self._ask, timeout=timeout, **options)
        require("django", "DjangoDatabaseCheck", "resilience-mw[django]")
        from django.conf import settings
        from django.db import connections

        # Not while the settings themselves are being read, which may be what makes this check.
        if settings.configured and alias not in connections:
            raise ConfigError(
                f"DjangoDatabaseCheck alias must be one of {', '.join(sorted(connections))}, "
                f"got {show(alias)}"
            )
        self.alias = self._subject = alias

    def _ask(self) -> None:
        from django.core.exceptions import ImproperlyConfigured
        from django.db import DatabaseError, InterfaceError

        try:
            connection = self._connection()
        except KeyError:
            raise CheckFailed("unknown alias") from None
        except ImproperlyConfigured:
            raise CheckFailed("not configured") from None
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT 1{connection.features.bare_select_suffix}")
                cursor.fetchone()
        except ImproperlyConfigured:
            raise CheckFailed("not configured") from None
        except (DatabaseError, InterfaceError):
            # Not chained: drivers put addresses and user names into their messages.
            raise CheckFailed("unavailable") from None
        finally:
            connection.close()

    def _connection(self) -> BaseDatabaseWrapper:
        from django.db import connections

        connection = connections.create_connection(self.alias)
        options: dict[str, Any] = dict(connection.settings_dict.get("OPTIONS") or {})
        options.pop("pool", None)
        if connection.vendor in _CONNECT_TIMEOUT:
            # A driver that waits for ever would hold this check's thread for ever.
            options.setdefault("connect_timeout", math.ceil(self.timeout))
        connection.settings_dict = {**connection.settings_dict, "OPTIONS": options}
        return connection

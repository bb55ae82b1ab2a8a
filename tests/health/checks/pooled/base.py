"""SQLite with what makes PostgreSQL's backend in Django special: a pool, and a connect timeout."""

from __future__ import annotations

import sqlite3
from typing import Any

from django.db.backends.sqlite3 import base

asked: list[dict[str, Any]] = []
"""The options of each connection that was opened."""


class DatabaseWrapper(base.DatabaseWrapper):
    """Refuses to connect through the pool, as an exhausted one does."""

    vendor = "postgresql"

    def get_new_connection(self, conn_params: Any) -> Any:
        asked.append(dict(self.settings_dict["OPTIONS"]))
        if conn_params.pop("pool", None):
            raise sqlite3.OperationalError("couldn't get a connection after 30.00 sec")
        conn_params.pop("connect_timeout", None)
        return super().get_new_connection(conn_params)

"""Django's databases are asked on a connection that is nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import django
import pytest
from django.db import connections
from django.db.backends.signals import connection_created
from django.db.utils import OperationalError

from resilience_mw.exceptions import ConfigError
from resilience_mw.health import DjangoDatabaseCheck
from tests.health.checks.asking import PASSED, ask
from tests.health.checks.pooled import base as pooled

with pytest.MonkeyPatch.context() as patch:
    patch.setenv("DJANGO_SETTINGS_MODULE", "tests.django.project.settings")
    django.setup()

Define = Callable[..., str]


@pytest.fixture
def database(monkeypatch, tmp_path) -> Define:
    """Give Django one more database: `alias = database(NAME=...)`."""

    def define(**settings: Any) -> str:
        defaults = {"ENGINE": "django.db.backends.sqlite3", "NAME": tmp_path / "db.sqlite3"}
        complete = connections.configure_settings({"default": {}, "shop": {**defaults, **settings}})
        monkeypatch.setitem(connections.settings, "shop", complete["shop"])
        return "shop"

    return define


@pytest.fixture
def opened() -> Any:
    """The connections that Django opened meanwhile."""
    seen: list[Any] = []

    def note(connection: Any, **_: object) -> None:
        seen.append(connection)

    connection_created.connect(note)
    yield seen
    connection_created.disconnect(note)


def test_each_ask_opens_a_connection_and_closes_it(database, opened):
    """None of those that the thread keeps."""
    check = DjangoDatabaseCheck(database(), timeout=10)
    assert [ask(check), ask(check)] == [PASSED, PASSED]
    assert len(opened) == 2
    assert opened[0] is not opened[1]
    assert [connection.connection for connection in opened] == [None, None]
    assert not hasattr(connections._connections, "shop")  # type: ignore[attr-defined]


def test_a_database_that_is_away_fails_and_recovers(database, tmp_path):
    """With a word, not with the driver's text."""
    folder = tmp_path / "volume"
    check = DjangoDatabaseCheck(database(NAME=folder / "db.sqlite3"), timeout=10)
    assert ask(check) == "unavailable"
    folder.mkdir()
    assert ask(check) == PASSED


def test_a_busy_pool_is_not_asked(database):
    """Nor changed in Django's settings, where the app goes on to use it."""
    alias = database(ENGINE="tests.health.checks.pooled", OPTIONS={"pool": True})
    with pytest.raises(OperationalError):
        connections.create_connection(alias).ensure_connection()
    pooled.asked.clear()
    assert ask(DjangoDatabaseCheck(alias, timeout=2.5)) == PASSED
    assert pooled.asked == [{"connect_timeout": 3}]
    assert connections.settings[alias]["OPTIONS"] == {"pool": True}


def test_a_connect_timeout_of_the_settings_holds(database):
    """Ours is a default."""
    alias = database(ENGINE="tests.health.checks.pooled", OPTIONS={"connect_timeout": 9})
    pooled.asked.clear()
    assert ask(DjangoDatabaseCheck(alias, timeout=10)) == PASSED
    assert pooled.asked == [{"connect_timeout": 9}]


def test_an_unknown_alias_is_an_error_at_once(database):
    """With those that there are."""
    database()
    with pytest.raises(ConfigError, match="alias must be one of default, shop, got 'shopp'"):
        DjangoDatabaseCheck("shopp")


def test_an_alias_that_goes_away_is_a_reason(database, monkeypatch):
    """Nothing is raised in the background."""
    check = DjangoDatabaseCheck(database(), timeout=10)
    monkeypatch.delitem(connections.settings, "shop")
    assert ask(check) == "unknown alias"


def test_an_engine_that_is_not_there_is_a_reason(database):
    """So is Django's stand-in for no database at all."""
    assert ask(DjangoDatabaseCheck(database(ENGINE="nowhere"), timeout=10)) == "not configured"
    dummy = database(ENGINE="django.db.backends.dummy")
    assert ask(DjangoDatabaseCheck(dummy, timeout=10)) == "not configured"


def test_the_package_is_an_extra(monkeypatch):
    """Without it, one line says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs django: pip install 'resilience-mw\[django\]'"):
        DjangoDatabaseCheck()

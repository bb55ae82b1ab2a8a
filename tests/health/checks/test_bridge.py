"""Checks of django-health-check run as ours, those of version 3 and those of version 4."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from typing import Any

import django
import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from resilience_mw.exceptions import ConfigError
from resilience_mw.health import DjangoHealthCheck
from tests.health.checks.asking import PASSED, ask

with pytest.MonkeyPatch.context() as patch:
    patch.setenv("DJANGO_SETTINGS_MODULE", "tests.django.project.settings")
    django.setup()

exceptions: Any = pytest.importorskip("health_check.exceptions")

ERRORS = [
    (exceptions.ServiceUnavailable, "unavailable"),
    (exceptions.ServiceReturnedUnexpectedResult, "unexpected result"),
    (exceptions.ServiceWarning, "warning"),
    (exceptions.HealthCheckException, "unknown error"),
]


@dataclasses.dataclass
class Version4:
    """As version 4 defines its checks, with a synchronous `run`."""

    error: Exception | None = None

    def run(self) -> None:
        if self.error is not None:
            raise self.error


@dataclasses.dataclass
class Version4Async(Version4):
    """With an asynchronous one, as most of its own have."""

    async def run(self) -> None:  # type: ignore[override]
        await sync_to_async(super().run)()


@dataclasses.dataclass
class Version3:
    """As version 3 defines its plugins: errors are kept, not raised."""

    error: Exception | None = None
    critical_service = True

    def __post_init__(self) -> None:
        self.errors: list[Exception] = []

    def check_status(self) -> None:
        if self.error is not None:
            raise self.error

    def run_check(self) -> None:
        self.errors = []
        try:
            self.check_status()
        except exceptions.HealthCheckException as error:
            self.errors.append(error)


KINDS = [Version3, Version4, Version4Async]


@pytest.mark.parametrize("kind", KINDS)
def test_classes_and_instances_pass(kind):
    """A class is called without arguments."""
    assert ask(DjangoHealthCheck(kind, timeout=10)) == PASSED
    assert ask(DjangoHealthCheck(kind(), timeout=10)) == PASSED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("error", "reason"), ERRORS)
def test_their_exceptions_are_reasons(kind, error, reason):
    """By their kind, without their text; and a failure passes away."""
    check = DjangoHealthCheck(kind(error("postgres://user:secret@db")), timeout=10)
    assert ask(check) == reason
    check._check.error = None
    assert ask(check) == PASSED


@pytest.mark.parametrize("kind", KINDS)
def test_warnings_need_not_fail(kind):
    """Other errors still do."""
    for error, reason in ERRORS:
        check = DjangoHealthCheck(kind(error("text")), timeout=10, fail_on_warning=False)
        assert ask(check) == (PASSED if error is exceptions.ServiceWarning else reason)


@pytest.mark.parametrize("kind", KINDS)
def test_another_exception_is_raised(kind):
    """For the log: it is a fault of the check."""
    with pytest.raises(ZeroDivisionError):
        ask(DjangoHealthCheck(kind(ZeroDivisionError()), timeout=10))


def test_an_asynchronous_check_is_cut_at_the_timeout():
    """Wherever it hangs."""

    class Hanging(Version4):
        async def run(self) -> None:  # type: ignore[override]
            await asyncio.sleep(30)

    started = time.monotonic()
    assert ask(DjangoHealthCheck(Hanging, timeout=0.1)) == "timeout"
    assert time.monotonic() - started < 10


def test_it_does_not_wait_for_the_thread_that_views_share():
    """A synchronous view holds Django's one thread; a cache, say, is asked all the same."""
    release = threading.Event()

    async def view_and_check() -> str:
        view = asyncio.create_task(sync_to_async(release.wait)(20))
        await asyncio.sleep(0.05)
        try:
            from tests.health.checks.asking import verdict

            return await verdict(DjangoHealthCheck(Version4Async, timeout=5))
        finally:
            release.set()
            await view

    assert asyncio.run(view_and_check()) == PASSED


@pytest.mark.parametrize("kind", KINDS)
def test_connections_that_it_opens_are_closed(kind, tmp_path, monkeypatch):
    """In the thread where they are: else each check would hold one for ever."""
    configured = connections.configure_settings(
        {
            "default": {},
            "shop": {"ENGINE": "django.db.backends.sqlite3", "NAME": tmp_path / "db.sqlite3"},
        }
    )
    monkeypatch.setitem(connections.settings, "shop", configured["shop"])
    opened: list[Any] = []

    def connect(self: Any) -> None:
        connections["shop"].ensure_connection()
        opened.append(connections["shop"])

    name = "check_status" if kind is Version3 else "run"
    base = kind if kind is not Version4Async else Version4
    monkeypatch.setattr(base, name, connect)
    assert ask(DjangoHealthCheck(kind, timeout=10)) == PASSED
    assert [connection.connection for connection in opened] == [None]


@pytest.mark.filterwarnings("ignore:`CacheBackend:DeprecationWarning")
def test_the_real_package_by_path():
    """Its cache check, on Django's cache of this process."""
    check = DjangoHealthCheck("health_check.Cache", timeout=10)
    assert [ask(check), ask(check)] == [PASSED, PASSED]


def test_a_noncritical_plugin_stays_one():
    """Unless we are told otherwise."""

    class Optional(Version3):
        critical_service = False

    assert DjangoHealthCheck(Optional).critical is False
    assert DjangoHealthCheck(Optional, critical=True).critical is True
    assert DjangoHealthCheck(Version4).critical is True


@pytest.mark.parametrize("check", [None, object(), 3, "", "nodots", "a b.c", "health_check."])
def test_what_is_none_of_their_checks(check):
    """Is one clear error."""
    with pytest.raises(ConfigError, match="DjangoHealthCheck check must be"):
        DjangoHealthCheck(check)


def test_a_package_that_is_missing():
    """Is named with what to install."""
    with pytest.raises(ConfigError, match="needs nowhere: pip install 'django-health-check'"):
        DjangoHealthCheck("nowhere.Cache")

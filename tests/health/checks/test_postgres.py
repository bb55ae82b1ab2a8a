"""A real PostgreSQL server behind Django's own pool, which is exhausted while all is well."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import pytest

from benchmarks.process import HOST, free_port
from resilience_mw.health import DjangoDatabaseCheck
from tests.health.checks.asking import PASSED, ask

pytest.importorskip("psycopg_pool")

with pytest.MonkeyPatch.context() as patch:
    patch.setenv("DJANGO_SETTINGS_MODULE", "tests.django.project.settings")
    django.setup()


def _program(name: str) -> str | None:
    """Distributions keep `initdb` beside the real server, off the path; Debian keeps both there."""
    server = shutil.which("postgres")
    places = [Path(server).resolve().parent] if server else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((str(place / name) for place in places if (place / name).exists()), None)


def _user() -> str | None:
    """Somebody else than root, whom the server refuses to serve."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


class Postgres:
    """A server with a fresh, empty cluster."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        user = _user()
        if user:
            shutil.chown(folder, user)
        self._as: dict[str, Any] = {"user": user, "cwd": folder}
        data = folder / "data"
        flags = ["-D", str(data), "-U", "shop", "-A", "trust", "-N", "--no-instructions"]
        self._run([str(_program("initdb")), *flags])
        command = [str(_program("postgres")), "-D", str(data), "-p", str(self.port), "-F"]
        command += ["-c", f"listen_addresses={HOST}", "-c", f"unix_socket_directories={folder}"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._as
        )
        import psycopg

        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(host=HOST, port=self.port, user="shop", dbname="postgres").close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > until or self.process.poll() is not None:
                    self.close()
                    raise
                time.sleep(0.05)

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **self._as)
        if done.returncode != 0:
            pytest.skip(f"initdb does not run here: {done.stderr.strip()[:200]}")

    def close(self) -> None:
        """End it at once, without waiting for clients."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    if _program("initdb") is None:
        pytest.skip("PostgreSQL is not installed")
    # Not below pytest's own directory, which others than its owner may not enter.
    with tempfile.TemporaryDirectory() as folder:
        server = Postgres(Path(folder))
        yield server
        server.close()


@pytest.fixture
def alias(postgres, monkeypatch) -> Iterator[str]:
    """A database of Django's with a pool of one connection."""
    from django.db import connections

    settings = {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": HOST,
        "PORT": postgres.port,
        "NAME": "postgres",
        "USER": "shop",
        "OPTIONS": {"pool": {"min_size": 1, "max_size": 1, "timeout": 0.3}},
    }
    complete = connections.configure_settings({"default": {}, "shop": settings})
    monkeypatch.setitem(connections.settings, "shop", complete["shop"])
    yield "shop"
    connections["shop"].close()
    connections["shop"].close_pool()  # type: ignore[attr-defined]
    del connections["shop"]


def test_an_exhausted_pool_is_not_asked(alias):
    """The app gets no connection any more, and the database is well all the same."""
    from django.db import OperationalError, connections

    taken = connections.create_connection(alias)
    taken.ensure_connection()
    try:
        with pytest.raises(OperationalError, match="couldn't get a connection"):
            connections.create_connection(alias).ensure_connection()
        assert ask(DjangoDatabaseCheck(alias, timeout=10)) == PASSED
    finally:
        taken.close()


def test_nothing_stays_open(alias, postgres):
    """Each ask leaves the server as it was."""
    import psycopg

    check = DjangoDatabaseCheck(alias, timeout=10)
    assert [ask(check) for _ in range(5)] == [PASSED] * 5
    where = {"host": HOST, "port": postgres.port, "user": "shop", "dbname": "postgres"}
    with psycopg.connect(**where, autocommit=True) as admin:
        query = (
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> %s"
        )
        until = time.monotonic() + 10
        while True:
            row = admin.execute(query, [admin.info.backend_pid]).fetchone()
            if row == (0,) or time.monotonic() > until:
                break
            time.sleep(0.02)
        assert row == (0,)


def test_a_stopped_server_holds_the_thread_for_a_while_only(alias, postgres):
    """It accepts and says nothing: the driver gives up at its connect timeout."""
    postgres.process.send_signal(signal.SIGSTOP)
    try:
        started = time.monotonic()
        assert ask(DjangoDatabaseCheck(alias, timeout=1.0)) == "unavailable"
        assert time.monotonic() - started < 20
    finally:
        postgres.process.send_signal(signal.SIGCONT)
    assert ask(DjangoDatabaseCheck(alias, timeout=10)) == PASSED

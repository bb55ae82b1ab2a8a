"""From a text to a store, and one line for a text that names none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from resilience_mw import ConfigError
from resilience_mw.rollout.stores import open_store

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        (f"redis://user:{SECRET}@cache.example:6380/3", "redis://cache.example:6380/3"),
        (f"rediss://:{SECRET}@cache.example", "rediss://cache.example:6379/0"),
        ("valkey://[::1]:6380", "redis://::1:6380/0"),
        ("valkeys://cache.example/2?prefix=shop", "rediss://cache.example:6379/2?prefix=shop"),
        (f"unix://{SECRET}@/run/redis.sock?db=2", "unix:/run/redis.sock"),
        ("redis://cache.example?socket_timeout=2", "redis://cache.example:6379/0"),
    ],
)
def test_redis_in_all_its_spellings(url: str, name: str):
    """Opening connects to nothing, and the name that is printed has no password in it."""
    assert open_store(url).name == name


def test_a_file_in_all_its_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Relative to where the process was when it opened it, or from the root."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rollout.toml"
    for url in (
        "file:rollout.toml",
        "file:./rollout.toml",
        f"file:{path}",
        f"file://{path}",
        f"file://localhost{path}",
    ):
        assert open_store(url).name == f"file:{path}"


def test_a_store_is_a_store():
    """Who has a store of their own gives it in place of the text."""
    store = open_store("redis://127.0.0.1")
    assert open_store(store) is store


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "store must be file:PATH.toml, file:PATH.json or redis://HOST:PORT/DB, got ''"),
        ("rollout.toml", "store must be file:PATH.toml, .* got 'rollout.toml'"),
        (f"memcached://{SECRET}@host", "store must be file:PATH.toml, .* got 'memcached:...'"),
        ("file:", "store must be a file .toml or .json, got ''"),
        ("file:rollout.yaml", "store must be a file .toml or .json, got 'rollout.yaml'"),
        ("file://host/rollout.toml", "store must be file:PATH or file:///PATH, got"),
        ("file:/nowhere/rollout.toml", "store must be a file in a directory that exists, got"),
        (f"redis:{SECRET}@host", "store must be redis://.*, got 'redis:...'"),
        (f"redis://:a/{SECRET}@host/0", "store must be redis://.*, got 'redis:...'"),
        (f"redis://:a#{SECRET}@host/0", "store must be redis://.*, got 'redis:...'"),
        ("redis://host:port/0", "store must be redis://.*, got 'redis:...'"),
        ("redis://host:70000/0", "store must be redis://.*, got 'redis:...'"),
        ("redis://host/first", "store must be redis://.*, got 'redis:...'"),
        (
            f"redis://:{SECRET}@host?prefix=a&db=1&socket_timeout=fast",
            "store has a wrong value for socket_timeout, got 'fast'$",
        ),
        (f"redis://host?pasword={SECRET}", "store has an option that the client has not, got pas"),
        ("rediss://host?ssl_cert_req=none", "store has an option .* has not, got ssl_cert_req$"),
        ("unix:///run/r.sock?db=one", "store has a wrong value for db, got 'one'$"),
        ("redis://host?prefix=", "store prefix must be 1 to 100 printable characters"),
        ("redis://host?prefix={a}", "store prefix must be 1 to 100 printable characters"),
        ("unix:", r"store must be unix://PATH\?db=0, .* got 'unix:...'"),
    ],
)
def test_what_names_no_store(url: str, message: str):
    """One line with the rule and the value, and never a password."""
    with pytest.raises(ConfigError, match=f"^{message}") as caught:
        open_store(url)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)


def test_without_the_package_it_says_what_to_install():
    """A real interpreter without redis: one line; a file needs nothing."""
    code = (
        "import sys; sys.modules['redis'] = None\n"
        "from resilience_mw.rollout.stores import open_store\n"
        "open_store('file:rollout.toml')\n"
        "try: open_store('redis://127.0.0.1')\n"
        "except ValueError as error: print(error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert ran.stdout == "a store in Redis needs redis: pip install 'resilience-mw[redis]'\n"

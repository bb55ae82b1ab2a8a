"""Checks written as text."""

from __future__ import annotations

from typing import Any

import pytest

from resilience_mw.exceptions import ConfigError
from resilience_mw.health import (
    Check,
    DiskCheck,
    DjangoDatabaseCheck,
    MemoryCheck,
    RedisCheck,
    TcpCheck,
    UpstreamCheck,
    from_spec,
)
from tests.health.checks import attributes
from tests.health.checks.asking import PASSED, ask

HERE = "tests.health.checks"

KINDS = {
    "http://127.0.0.1:7001/status": UpstreamCheck,
    "HTTP://127.0.0.1:7001/status": UpstreamCheck,
    " https://orders.internal/healthz ": UpstreamCheck,
    "unix:/run/orders.sock:/status": UpstreamCheck,
    "http+unix://%2Frun%2Forders.sock/status": UpstreamCheck,
    "tcp://mail.internal:25": TcpCheck,
    "tcp://[::1]:25": TcpCheck,
    "redis://:secret@cache.internal:6379/0": RedisCheck,
    "rediss://cache.internal": RedisCheck,
    "redis+unix:///run/redis.sock?db=1": RedisCheck,
    "disk:": DiskCheck,
    "disk:/var?min_free=0.1": DiskCheck,
    "memory:": MemoryCheck,
    "memory:?max_used=0.9": MemoryCheck,
    "django:": DjangoDatabaseCheck,
    "django:default": DjangoDatabaseCheck,
    f"{HERE}.attributes:ping": Check,
    f"{HERE}.attributes:check": Check,
}


@pytest.mark.parametrize(("text", "kind"), KINDS.items(), ids=range(len(KINDS)))
def test_kinds(text, kind):
    """Each kind of text makes its kind of check."""
    assert type(from_spec(text)) is kind


def test_parts():
    """What stands in the text is what the check works with."""
    disk: Any = from_spec("disk:/var?min_free=2e9")
    assert (disk.path, disk.min_free) == ("/var", 2e9)
    everything: Any = from_spec("disk:")
    assert (everything.path, everything.min_free) == ("/", 0.05)
    memory: Any = from_spec("memory:?max_used=0.5")
    assert memory.max_used == 0.5
    database: Any = from_spec("django:")
    assert database.alias == "default"


def test_an_upstream_is_asked(peer):
    """The very page."""
    upstream = peer()
    assert ask(from_spec(upstream.url("/deep/status?x=1"))) == PASSED
    assert upstream.heads[0].startswith(b"GET /deep/status?x=1 ")


def test_a_port_is_asked(peer):
    """With its number."""
    assert ask(from_spec(f"tcp://{peer().address}")) == PASSED


def test_a_socket_of_redis_is_asked(tmp_path):
    """Nobody has made this one."""
    assert ask(from_spec(f"redis+unix://{tmp_path}/redis.sock")) == "no socket"


def test_attributes():
    """A check is itself, with its options; a function becomes one; dots lead inside."""
    assert from_spec(f"{HERE}.attributes:check") is attributes.check
    assert from_spec(f"{HERE}.attributes:ping").probe is attributes.ping
    assert from_spec(f"{HERE}.attributes:Group.inner").interval == 7


BAD = {
    "": "a check must be http://",
    "   ": "a check must be http://",
    "status": "a check must be http://",
    "ftp://host/": "a check must be http://",
    "module:": "a check must be http://",
    ":attribute": "a check must be http://",
    "my-module:ping": "a check must be http://",
    "nowhere:ping": "there is no 'nowhere'",
    f"{HERE}.nowhere:ping": f"there is no '{HERE}.nowhere'",
    f"{HERE}.attributes:nothing": "has no 'nothing'",
    f"{HERE}.attributes:number": "must be a Check or a function",
    f"{HERE}.attributes:Group": "must be a Check or a function",
    "http://host:0/": "UpstreamCheck port must be",
    "tcp://host": "must name a port",
    "tcp://host:25/path": "tcp://host:port and nothing more",
    "tcp://:25": "must name a host",
    "redis://:secret@host:port": "RedisCheck url must be",
    "disk:/?max_used=1": "DiskCheck takes ?min_free=",
    "disk:/?min_free=10%": "DiskCheck takes ?min_free=",
    "memory:?max_used=0": "MemoryCheck takes ?max_used=",
    "memory:?max_used=2": "MemoryCheck max_used must be",
    "memory:/": "MemoryCheck must be memory:",
    "django:nowhere-to-be-found": "DjangoDatabaseCheck alias must be one of",
}


@pytest.mark.parametrize(("text", "rule"), BAD.items(), ids=range(len(BAD)))
def test_bad_text(text, rule, monkeypatch):
    """Is one line, without secrets."""
    if text.startswith("django:"):
        with monkeypatch.context() as patch:
            patch.setenv("DJANGO_SETTINGS_MODULE", "tests.django.project.settings")
            __import__("django").setup()
    with pytest.raises(ConfigError) as refused:
        from_spec(text)
    message = str(refused.value)
    assert rule in message
    assert "secret" not in message
    assert len(message.splitlines()) == 1


def test_a_module_that_cannot_be_imported_shows_why():
    """The missing module is not the one that was named; the traceback is kept behind the line."""
    with pytest.raises(ConfigError, match=r"ModuleNotFoundError: .*resilience_mw\.nowhere") as told:
        from_spec(f"{HERE}.broken:ping")
    assert isinstance(told.value.__cause__, ModuleNotFoundError)

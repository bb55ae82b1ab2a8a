"""A port that cannot be had is one clear error, and the server does not start."""

from __future__ import annotations

import socket

import pytest

from benchmarks.process import HOST, Server, ServerError, free_port
from resilience_mw.exceptions import ConfigError

from .launching import launch
from .probing import Port

NOT = "health.port must be free, or 0 = off, got '127.0.0.1', port"


@pytest.mark.parametrize(
    "kind",
    [
        "uvicorn",
        "gunicorn sync, two workers",
        "gunicorn gthread, preloaded",
        "gunicorn asgi",
        "gunicorn uvicorn-worker",
        "our runner",
        "our runner, two workers",
        "our adapter, gthread",
        "our adapter, asgi",
        "our adapter, uvicorn-worker",
    ],
)
def test_a_port_that_somebody_else_has(kind, monkeypatch: pytest.MonkeyPatch):
    """The message names the option, the address and the reason."""
    monkeypatch.setattr(Server, "_report", lambda server, what: server.output())
    port = Port(free_port())
    with socket.create_server((HOST, port.port)):
        try:
            server, _ = launch(kind, port)
            # It may have said a word to a client before it gave up.
            assert server.wait(20.0) != 0
            output = server.output()
        except ServerError as error:
            output = str(error)
    assert f"{NOT} {port.port}: Address already in use" in output


@pytest.mark.parametrize("host", ["999.1.1.1", "203.0.113.7", "127.0.0.1:80", "a" * 300])
def test_a_host_that_is_not_this_machine(host, opened):
    """Is another mistake than a port that is taken."""
    with pytest.raises(ConfigError, match=r"^health\.host must be an address of this machine, or"):
        opened(host=host)

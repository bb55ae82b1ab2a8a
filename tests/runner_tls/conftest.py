"""A certificate that the tests make, servers that show it, and clients that check it."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from benchmarks.process import Server
from benchmarks.servers import gunicorn, start
from benchmarks.talk import Client

ASGI = "tests.runner_gunicorn.apps:asgi"
WSGI = "tests.runner_gunicorn.apps:wsgi"

TIMES = {
    "RESILIENCE_RUNNER_KEEP_ALIVE_TIMEOUT": "1.5",
    "RESILIENCE_RUNNER_HEADERS_TIMEOUT": "1",
    "RESILIENCE_RUNNER_DRAIN_DELAY": "1.5",
    "RESILIENCE_RUNNER_SHUTDOWN_TIMEOUT": "4",
    "RESILIENCE_DEADLINE_RECEIVE_TIMEOUT": "2",
}

RUN = """
from resilience_mw.runner.uvicorn import run
run({app!r}, port={port}, http={http!r}, loop={loop!r}, access_log=False,
    ssl_certfile={certificate!r}, ssl_keyfile={key!r})
"""


class TLSClient(Client):
    """One connection, whose handshake is done."""

    def __init__(self, server: Server, trust: ssl.SSLContext) -> None:
        super().__init__(server)
        try:
            self.socket = trust.wrap_socket(self.socket, server_hostname=server.host)
        except BaseException:
            self.close()
            raise


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, ssl.SSLContext]:
    """Make a certificate for 127.0.0.1: its file, that of its key, and who trusts it."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    shown, key = folder / "certificate.pem", folder / "key.pem"
    issued.private_key_pem.write_to_path(key)
    for blob in issued.cert_chain_pems:
        blob.write_to_path(shown, append=True)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    return shown, key, trust


@pytest.fixture
def launch(
    certificate: tuple[Path, Path, ssl.SSLContext], serve: Callable[[Server], Server]
) -> Callable[..., Server]:
    """Start a server by its name; options are named without the common prefix."""
    shown, key, _ = certificate

    def launch(name: str, app: str = "", **options: str) -> Server:
        given = {f"RESILIENCE_{option.upper()}": value for option, value in options.items()}
        env = {**TIMES, **given}
        if name == "gthread":
            flags = ["-c", "python:resilience_mw.runner.gunicorn"]
            flags += ["--certfile", str(shown), "--keyfile", str(key)]
            return serve(gunicorn(app or WSGI, args=flags, env=env))
        http, _, loop = name.partition("-")
        words = {"app": app or ASGI, "http": http, "loop": loop}
        words |= {"certificate": str(shown), "key": str(key)}
        command = [sys.executable, "-c"]
        return serve(start(lambda port: [*command, RUN.format(port=port, **words)], env=env))

    return launch


@pytest.fixture
def connect(
    certificate: tuple[Path, Path, ssl.SSLContext],
) -> Iterator[Callable[[Server], Client]]:
    """Open connections, and close them after the test."""
    with ExitStack() as opened:
        yield lambda server: opened.enter_context(TLSClient(server, certificate[2]))

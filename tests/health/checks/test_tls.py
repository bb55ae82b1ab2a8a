"""Over TLS the certificate must be right: a tier that cannot prove who it is does not pass."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import trustme

from resilience_mw.exceptions import ConfigError
from resilience_mw.health import UpstreamCheck
from tests.health.checks.asking import PASSED, ask
from tests.health.checks.peer import OK, Peer


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca(authority, tmp_path_factory) -> str:
    """A file with the authority's certificate."""
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


class TlsPeer(Peer):
    """A peer that speaks TLS with a certificate."""

    def __init__(self, certificate: trustme.LeafCert) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(self._context)
        self.names: list[str | None] = []
        self._context.sni_callback = lambda _, name, __: self.names.append(name)
        super().__init__()

    def _serve(self, connection: socket.socket) -> None:
        try:
            secure = self._context.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        super()._serve(secure)


@pytest.fixture
def secure() -> Iterator[Callable[..., TlsPeer]]:
    with ExitStack() as peers:
        yield lambda *a, **k: peers.enter_context(TlsPeer(*a, **k))


def test_a_trusted_certificate_passes(secure, authority, ca):
    """Of the name that is asked, which is also what the peer is told."""
    upstream = secure(authority.issue_cert("localhost"))
    check = UpstreamCheck(f"https://localhost:{upstream.port}/status", timeout=10, ca=ca)
    assert ask(check) == PASSED
    assert check.status == 200
    assert upstream.names == ["localhost"]


def test_a_context_of_ones_own(secure, authority):
    """With client certificates, say."""
    upstream = secure(authority.issue_cert("127.0.0.1"))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    url = f"https://127.0.0.1:{upstream.port}/"
    assert ask(UpstreamCheck(url, timeout=10, ssl_context=context)) == PASSED


def test_an_unknown_authority_fails(secure):
    """The system's authorities did not sign it."""
    upstream = secure(trustme.CA().issue_cert("localhost"))
    check = UpstreamCheck(f"https://localhost:{upstream.port}/", timeout=10)
    assert ask(check) == "certificate"


def test_another_name_fails(secure, authority, ca):
    """Unless it is the name that `host` says."""
    upstream = secure(authority.issue_cert("shop.example"))
    url = f"https://127.0.0.1:{upstream.port}/"
    assert ask(UpstreamCheck(url, timeout=10, ca=ca)) == "certificate"
    assert ask(UpstreamCheck(url, timeout=10, ca=ca, host="shop.example:8443")) == PASSED
    assert b"\r\nHost: shop.example:8443\r\n" in upstream.heads[0]


def test_an_expired_certificate_fails(secure, authority, ca):
    """From the moment on."""
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    upstream = secure(authority.issue_cert("localhost", not_after=yesterday))
    check = UpstreamCheck(f"https://localhost:{upstream.port}/", timeout=10, ca=ca)
    assert ask(check) == "certificate"


def test_plain_http_behind_https_fails(peer, ca):
    """With a reason that says where to look."""
    upstream = peer()
    upstream.behaviour = OK

    def plain(connection: socket.socket) -> None:
        with connection:
            connection.recv(4096)
            connection.sendall(OK)

    upstream._serve = plain
    check = UpstreamCheck(f"https://localhost:{upstream.port}/", timeout=10, ca=ca)
    assert ask(check) == "tls"


def test_a_handshake_that_hangs_is_cut(ca):
    """At the timeout, like everything else."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        started = time.monotonic()
        assert ask(UpstreamCheck(f"https://127.0.0.1:{port}/", timeout=0.2, ca=ca)) == "timeout"
        assert time.monotonic() - started < 5.0


def test_a_peer_that_never_says_goodbye_holds_nothing_up(secure, authority, ca):
    """The close of TLS waits for the other side's; ours does not."""
    upstream = secure(authority.issue_cert("localhost"))
    done = threading.Event()

    def stay(connection: socket.socket, _: bytes) -> None:
        connection.sendall(OK)
        done.wait(10)

    upstream.behaviour = stay
    check = UpstreamCheck(f"https://localhost:{upstream.port}/", timeout=5, ca=ca)
    started = time.monotonic()
    try:
        assert ask(check) == PASSED
        assert time.monotonic() - started < 4.0
    finally:
        done.set()


def test_a_bad_ca_is_an_error_at_once(tmp_path):
    """With the option's name."""
    for path in (tmp_path / "missing.pem", tmp_path / "empty.pem"):
        (tmp_path / "empty.pem").touch()
        with pytest.raises(ConfigError, match="UpstreamCheck ca must be a file or directory"):
            UpstreamCheck("https://localhost/", ca=path)
    with pytest.raises(ConfigError, match="ca or ssl_context, not both"):
        UpstreamCheck("https://localhost/", ca=tmp_path, ssl_context=ssl.create_default_context())

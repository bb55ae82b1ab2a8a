"""An upstream behind TLS, and one that only IPv6 leads to."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from resilience_mw.rollout.proxy.asgi import proxy as asgi_proxy
from resilience_mw.rollout.proxy.wsgi import proxy as wsgi_proxy
from tests.asgi.harness import Exchange, run, scope
from tests.servers import Server, uvicorn
from tests.wsgi.harness import call

from .raw import RawUpstream, says

APP = "tests.rollout.proxy.upstream_app:app"

Fetch = Callable[..., tuple[int | None, bytes]]


def through_asgi(loop: str) -> Fetch:
    """Return what sends requests through an ASGI proxy."""

    def fetch(url: str, path: str, query: str = "", **options: Any) -> tuple[int | None, bytes]:
        async def main() -> Exchange:
            app = asgi_proxy(url, **options)
            head = scope(path, query_string=query.encode())
            for _ in range(3):
                exchange = await Exchange({**head}).through(app)
            await app.aclose()
            return exchange

        exchange = run(main(), loop)
        return exchange.status, exchange.text

    return fetch


def through_wsgi(url: str, path: str, query: str = "", **options: Any) -> tuple[int, bytes]:
    """Send requests through a WSGI proxy."""
    app = wsgi_proxy(url, **options)
    for _ in range(3):
        answer = call(app, path, QUERY_STRING=query)
    app.close()
    return answer


FETCH: dict[str, Fetch] = {
    "asyncio": through_asgi("asyncio"),
    "uvloop": through_asgi("uvloop"),
    "wsgi": through_wsgi,
}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Whoever signs the upstream's certificate."""
    return trustme.CA()


@pytest.fixture(scope="module")
def secure(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The upstream of these tests, with a certificate for `localhost`."""
    folder: Path = tmp_path_factory.mktemp("certificate")
    certificate = authority.issue_cert("localhost")
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    flags = ["--ssl-keyfile", str(folder / "key.pem"), "--ssl-certfile", str(folder / "cert.pem")]

    with uvicorn(APP, args=flags) as server:
        yield server


@pytest.fixture
def trust(authority: trustme.CA) -> ssl.SSLContext:
    """What a proxy needs to know to believe the upstream."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.mark.parametrize("fetch", FETCH.values(), ids=FETCH)
def test_tls_to_the_upstream(fetch, secure, trust):
    """Bodies of any size, by names that the certificate has."""
    url = f"https://localhost:{secure.port}"
    status, body = fetch(url, "/download", "size=1000000", verify=trust)
    assert (status, len(body)) == (200, 1_000_000)


@pytest.mark.parametrize("fetch", FETCH.values(), ids=FETCH)
def test_an_upstream_that_cannot_prove_who_it_is_gets_no_request(fetch, secure, trust, caplog):
    """By an authority that nobody knows, or by another name."""
    assert fetch(f"https://localhost:{secure.port}", "/echo")[0] == 502
    assert fetch(f"https://127.0.0.1:{secure.port}", "/echo", verify=trust)[0] == 502
    assert all("certificate verify failed" in message for message in caplog.messages)
    assert len(caplog.messages) == 2


@pytest.mark.parametrize("fetch", FETCH.values(), ids=FETCH)
def test_an_upstream_that_speaks_no_tls(fetch, upstream):
    """The handshake fails, and that is all."""
    assert fetch(f"https://127.0.0.1:{upstream.port}", "/echo")[0] == 502


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("fetch", FETCH.values(), ids=FETCH)
def test_ipv6(fetch):
    """In brackets, as everywhere."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    with RawUpstream(says(answer), host="::1") as raw:
        assert fetch(raw.url, "/") == (200, b"ok")

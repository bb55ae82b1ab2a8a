"""An upstream that answers before it has the whole request."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from resilience_mw.rollout.proxy import UpstreamLost
from resilience_mw.rollout.proxy.asgi import proxy
from tests.asgi.harness import Exchange, run, scope, until

from .raw import RawUpstream

CHUNKED = (b"transfer-encoding", b"chunked")
LONG = (b"content-length", b"30000000")


class Uploading(Exchange):
    """A client that goes on sending until it is told to stop."""

    async def receive(self) -> dict[str, Any]:
        """Be the server's ``receive``."""
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"x" * 10_000, "more_body": True}


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("bound", [CHUNKED, LONG], ids=["chunks", "length"])
@pytest.mark.parametrize("reads", [True, False], ids=["drains", "is deaf"])
def test_an_early_refusal_reaches_the_client(bound, reads, loop):
    """It is not lost in the noise of a large upload, nor does the upload go on for ever."""
    over = threading.Event()

    def talk(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nbig!")
        while reads and connection.recv(65_536):
            pass
        over.wait(10)

    async def main() -> None:
        app = proxy(raw.url)
        for _ in range(2):
            exchange = Uploading(scope("/", method="POST", headers=[bound]))
            await exchange.through(app)
            assert (exchange.status, exchange.text) == (413, b"big!")
        await app.aclose()

    with RawUpstream(talk) as raw:
        run(main(), loop)
        over.set()
        assert raw.accepted == 2


def test_a_late_refusal_of_what_is_not_taken_reaches_the_client():
    """It comes when our writing has come to a standstill."""
    over = threading.Event()

    def talk(connection: socket.socket, head: bytes) -> None:
        over.wait(0.3)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nbig!")
        over.wait(10)

    async def main() -> None:
        app = proxy(raw.url)
        exchange = Uploading(scope("/", method="POST", headers=[LONG]))
        await exchange.through(app)
        assert (exchange.status, exchange.text) == (413, b"big!")
        await app.aclose()

    with RawUpstream(talk) as raw:
        run(main())
        over.set()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("bound", [CHUNKED, (b"content-length", b"2000")], ids=["chunks", "length"])
def test_both_ways_at_once(upstream, bound, loop):
    """A client that sends no more until it has its answer so far."""

    class Conversation(Exchange):
        said = 0

        async def receive(self) -> Any:
            await until(lambda: len(self.text) >= self.said * 100)
            if self.said == 20:
                await self.gone.wait()
            self.said += 1
            more = self.said < 20
            return {"type": "http.request", "body": b"%100d" % self.said, "more_body": more}

    async def main() -> None:
        app = proxy(upstream.url)
        exchange = Conversation(scope("/duplex", method="POST", headers=[bound]))
        await exchange.through(app)
        assert exchange.status == 200
        assert exchange.text == b"".join(b"%100d" % number for number in range(1, 21))
        assert exchange.sent[-1] == {"type": "http.response.body", "body": b""}
        again = await Exchange(scope("/echo")).through(app)
        assert again.status == 200
        await app.aclose()

    run(main(), loop)


def test_a_client_that_leaves_in_the_middle_of_both(upstream, seen):
    """Neither way goes on."""

    class Leaving(Exchange):
        said = False

        async def receive(self) -> Any:
            if self.said:
                await until(lambda: len(self.text) == 5)
                return {"type": "http.disconnect"}
            self.said = True
            return {"type": "http.request", "body": b"hello", "more_body": True}

    async def main() -> None:
        app = proxy(upstream.url)
        exchange = Leaving(scope("/duplex", method="POST", headers=[CHUNKED]))
        await exchange.through(app)
        assert exchange.text == b"hello"
        assert exchange.sent[-1]["more_body"]
        assert not app.pools.current().idle
        await app.aclose()

    run(main())


def test_a_body_that_is_longer_than_it_says_ends_both(upstream):
    """Not one byte more goes to the upstream, which would take it for the next request."""

    class Longer(Exchange):
        said = 0

        async def receive(self) -> Any:
            await until(lambda: len(self.text) == 5 * self.said)
            self.said += 1
            return {"type": "http.request", "body": b"hello", "more_body": True}

    async def main() -> None:
        app = proxy(upstream.url)
        exchange = Longer(scope("/duplex", method="POST", headers=[(b"content-length", b"12")]))
        with pytest.raises(UpstreamLost):
            await exchange.through(app)
        assert exchange.text == b"hellohello"
        await app.aclose()

    run(main())


def test_an_interim_answer_does_not_stop_the_request():
    """103 comes, and the upstream still waits for the rest of the body."""
    bodies: list[bytes] = []

    def talk(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        body = b""
        while not body.endswith(b"0\r\n\r\n"):
            body += connection.recv(65_536)
        bodies.append(body)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def main() -> None:
        app = proxy(raw.url)
        parts = [b"a" * 10, b"b" * 20, b"c" * 30]
        body = [{"type": "http.request", "body": part, "more_body": True} for part in parts]

        class Slow(Exchange):
            async def receive(self) -> Any:
                await asyncio.sleep(0.05)
                return await super().receive()

        exchange = Slow(
            scope("/", method="POST", headers=[CHUNKED]), [*body, {"type": "http.request"}]
        )
        await exchange.through(app)
        assert exchange.text == b"ok"
        await app.aclose()

    with RawUpstream(talk) as raw:
        run(main())
    assert bodies[0].count(b"0\r\n\r\n") == 1
    # The first part may have come with the head.
    assert bodies[0].endswith(b"14\r\n" + b"b" * 20 + b"\r\n1e\r\n" + b"c" * 30 + b"\r\n0\r\n\r\n")

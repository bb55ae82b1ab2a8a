"""What clients of a recipe see, in the words of the table in docs/other-servers.md."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from functools import partial

from benchmarks.process import Server
from benchmarks.talk import Answer, Client, get
from tests.runner_gunicorn.launch import together

from .recipes import launch

HEAD = b"GET / HTTP/1.1\r\nHost: te"
BODY = b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nsome"

NEVER = 6.0
"""Seconds; all times are 2 s here."""

DELAY = 1.5


def said(answer: Answer) -> str:
    """Return an answer as the table has it."""
    if answer.ended == "timeout":
        return "never"
    if not answer.status or answer.ended != "complete":
        return "closed"
    return f"{answer.status}, close" if answer.says_close else str(answer.status)


def slow_clients(name: str) -> dict[str, str]:
    """Look at clients that take their time."""
    with launch(name) as server:
        return together(
            **{
                "a client that sends nothing": lambda: _slow(server, b""),
                "half a head": lambda: _slow(server, HEAD),
                "a head, dripped": lambda: _slow(server, HEAD, b"s"),
                "a body that stalls": lambda: _slow(server, BODY),
                "a body, dripped": lambda: _slow(server, BODY, b"s"),
                "an idle connection": lambda: _slow(server, b"", used=True),
            }
        )


def _slow(server: Server, start: bytes, drip: bytes = b"", *, used: bool = False) -> str:
    with Client(server) as client:
        if used:
            assert client.get("/").ok
        until = time.monotonic() + NEVER
        client.send(start)
        answer = client.read(0.25 if drip else NEVER)
        while answer.ended == "timeout" and time.monotonic() < until:
            client.send(drip)
            answer = client.read(0.25)
    return said(answer).removesuffix(", close")


def stop(name: str) -> dict[str, str]:
    """Look at everybody who is there at SIGTERM, or comes later."""
    server = launch(name, runner_keep_alive_timeout="20")
    clients = running, stream, half, idle, *asking = [Client(server) for _ in range(6)]
    try:
        for client in (idle, *asking):
            assert client.get("/").ok
        running.ask("/sleep/3")
        stream.ask("/stream/30")
        half.send(HEAD)
        time.sleep(0.3)
        assert get(server, "/readyz").status == 200
        server.signal(signal.SIGTERM)
        told = time.monotonic()

        def at(moment: float, job: Callable[[], str]) -> Callable[[], str]:
            def wait() -> str:
                time.sleep(max(0.0, told + moment - time.monotonic()))
                return job()

            return wait

        def ends_half() -> str:
            half.send(b"st\r\n\r\n")
            return said(half.read())

        return together(
            **{
                "`/readyz` at SIGTERM": at(0.2, partial(_new, server, "/readyz")),
                "`/livez` meanwhile": at(0.2, partial(_new, server, "/livez")),
                "a new connection, during the delay": at(0.8, partial(_new, server)),
                "a request on an idle connection, +0.02 s": at(0.02, partial(_ask, asking[0])),
                "a request on an idle connection, +0.5 s": at(0.5, partial(_ask, asking[1])),
                "half a head at SIGTERM, then the rest": at(0.5, ends_half),
                "a new connection, after the delay": at(DELAY + 0.8, partial(_new, server)),
                "an idle connection, after the delay": lambda: _ended(idle),
                "a request in flight": lambda: said(running.read()),
                "a stream in flight": lambda: _whole(stream.read()),
                "the exit code": lambda: str(server.wait(20)),
            }
        )
    finally:
        for client in clients:
            client.close()
        server.kill()


def _new(server: Server, path: str = "/") -> str:
    try:
        return said(get(server, path))
    except ConnectionRefusedError:
        return "refused"


def _ask(client: Client) -> str:
    client.ask("/")
    return said(client.read())


def _ended(client: Client) -> str:
    return "never" if client.wait_closed(DELAY + 5.0) is None else "closed"


def _whole(answer: Answer) -> str:
    return "whole" if answer.ok and answer.body.count(b"piece") == 30 else "cut"


def overrun(name: str) -> dict[str, str]:
    """Look at a request that is longer than there is time for."""
    server = launch(name, runner_drain_delay="0", runner_shutdown_timeout="1")
    with Client(server) as client:
        client.ask("/sleep/10")
        time.sleep(0.3)
        server.signal(signal.SIGTERM)
        answer = client.read(8.0)
        code = server.wait(10)
    shut_down = "run" if "lifespan.shutdown" in server.output() else "not run"
    return {
        "a request longer than `shutdown_timeout`": (
            said(answer).removesuffix(", close") if answer.status else "no answer"
        ),
        "the exit code then": str(code),
        "the app's own shutdown then": "-" if name == "waitress" else shut_down,
    }


def twice(name: str) -> dict[str, str]:
    """Look at a request in flight while SIGTERM comes twice."""
    server = launch(name, runner_drain_delay="1", runner_shutdown_timeout="10")
    with Client(server) as client:
        client.ask("/sleep/3")
        for _ in range(2):
            time.sleep(0.3)
            server.signal(signal.SIGTERM)
        answer = client.read(8.0)
        server.wait(10)
    return {"a second SIGTERM": "not heard" if answer.ok else "ends at once"}


def websocket(name: str) -> dict[str, str]:
    """Look at how a websocket ends."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    if name == "waitress":
        return {"a websocket": "-"}
    server = launch(name, runner_drain_delay="0.5", runner_shutdown_timeout="1")
    seen = ""
    with connect(f"ws://{server.host}:{server.port}/ws", open_timeout=5) as socket:
        socket.send("before")
        assert socket.recv(5) == "before"
        server.signal(signal.SIGTERM)
        try:
            socket.recv(10)
        except ConnectionClosed as closed:
            seen = "no close frame" if closed.rcvd is None else str(closed.rcvd.code)
    server.wait(10)
    return {"a websocket": seen}


OBSERVED = (slow_clients, stop, overrun, twice, websocket)

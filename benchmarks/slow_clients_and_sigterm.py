"""What slow clients get, and what SIGTERM does, on each server without and with our runner.

Where we have no runner, it is our recipe of docs/other-servers.md.

    python -m benchmarks.slow_clients_and_sigterm --write          # fill the pages: 15 minutes
    python -m benchmarks.slow_clients_and_sigterm --quick          # three servers: 3 minutes
    python -m benchmarks.slow_clients_and_sigterm --server "gunicorn gthread" --table stop

All times are scaled down: keep-alive 3 s, heads 4 s, bodies 6 s, drain delay 2 s, shutdown 8 s;
Gunicorn's own timeout is 8 s. What has not happened after 14 s counts as never.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.filling import fill, table
from benchmarks.kinds import ASGI, KINDS, Kind
from benchmarks.process import HOST, ROOT, Server, ServerError
from benchmarks.talk import Answer, Client, get

NEVER = 14.0

HEAD = b"GET / HTTP/1.1\r\nHost: te"
BODY = b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nsome"


def slow(server: Server, start: bytes, drip: bytes = b"", *, used: bool = False) -> str:
    """Send a beginning and then nothing, or a byte every half second; tell what came of it."""
    with Client(server) as client:
        if used and not client.get("/").ok:
            return "-"
        opened = time.monotonic()
        client.send(start)
        answer = client.read(0.5 if drip else NEVER)
        while answer.ended == "timeout" and time.monotonic() - opened < NEVER:
            client.send(drip)
            answer = client.read(0.5)
        return _told(answer, time.monotonic() - opened)


def _told(answer: Answer, seconds: float) -> str:
    if answer.ended == "timeout":
        return "**never**"
    what = str(answer.status) if answer.status else {"reset": "reset"}.get(answer.ended, "closed")
    return f"{seconds:.1f} s, {what}"


SLOW: dict[str, Callable[[Server], str]] = {
    "sends nothing": lambda server: slow(server, b""),
    "half a head": lambda server: slow(server, HEAD),
    "head dripped": lambda server: slow(server, HEAD, b"s"),
    "body stalls": lambda server: slow(server, BODY),
    "body dripped": lambda server: slow(server, BODY, b"s"),
    "idle, kept": lambda server: slow(server, b"", used=True),
    "second head": lambda server: slow(server, HEAD, used=True),
}


def slow_clients(kind: Kind, *, ours: bool) -> dict[str, str]:
    """One row of the table of slow clients."""
    if not kind.one_at_a_time:
        with _serving(kind, ours, keep_alive=3) as server:
            return _together({name: _on(server, job) for name, job in SLOW.items()})
    row = {}
    for name, job in SLOW.items():
        if name in ("idle, kept", "second head"):
            row[name] = "-"  # it keeps no connection
            continue
        with _serving(kind, ours, keep_alive=3) as server:
            row[name] = _together({name: _on(server, job)})[name]
    return row


class _Stop:
    """Clients of a server that is told to stop while they are there; times count from there."""

    def __init__(self, server: Server, *, websocket: bool) -> None:
        self.server = server
        self.websocket = websocket
        self.clients = [Client(server) for _ in range(4)]
        self.running, self.half, self.idle, self.asking = self.clients
        for client in (self.idle, self.asking):
            client.get("/")
        self.running.ask("/sleep/2")
        self.half.send(HEAD)
        self.at = 0.0

    def rows(self) -> dict[str, str]:
        """Send SIGTERM, and tell what each client sees."""
        jobs: dict[str, Callable[[], str]] = {
            "in flight": self._in_flight,
            "idle, kept": self._idle,
            "request on idle +0.5 s": self._request,
            "half a head +0.5 s": self._half,
            "new connection +0.5 s": lambda: self._new(0.5),
            "new connection +4 s": lambda: self._new(4.0),
            "readiness +0.2 s": self._ready,
            "exit": self._exit,
        }
        if self.websocket:
            jobs["websocket"] = self._websocket
        time.sleep(0.3)
        self.at = time.monotonic()
        threading.Timer(0.0, self.server.signal, (signal.SIGTERM,)).start()
        row = _together(jobs)
        for client in self.clients:
            client.close()
        return row

    def _wait(self, moment: float) -> None:
        time.sleep(max(0.0, self.at + moment - time.monotonic()))

    def _since(self) -> float:
        return time.monotonic() - self.at

    def _in_flight(self) -> str:
        answer = self.running.read(NEVER)
        close = "close" if answer.says_close else "no close"
        return f"{answer.status}, {close}" if answer.ok else f"**{answer.ended}**"

    def _idle(self) -> str:
        closed = self.idle.wait_closed(NEVER)
        return "**kept**" if closed is None else f"closed at {self._since():.1f} s"

    def _request(self) -> str:
        self._wait(0.5)
        self.asking.ask("/")
        return self._answered(self.asking.read(NEVER))

    def _half(self) -> str:
        self._wait(0.5)
        self.half.send(b"st\r\n\r\n")
        return self._answered(self.half.read(NEVER))

    def _new(self, moment: float) -> str:
        self._wait(moment)
        try:
            with Client(self.server) as client:
                return self._answered(client.get("/", NEVER))
        except OSError:
            return "refused"

    def _answered(self, answer: Answer) -> str:
        if answer.ok:
            return "200, close" if answer.says_close else "200"
        return (
            f"**hangs, {answer.ended} at {self._since():.1f} s**" if answer.at > 1.5 else "dropped"
        )

    def _ready(self) -> str:
        self._wait(0.2)
        try:
            return str(get(self.server, "/readyz", 2.0).status or "none")
        except OSError:
            return "none"

    def _websocket(self) -> str:
        from websockets.exceptions import ConnectionClosed
        from websockets.sync.client import connect

        with connect(f"ws://{HOST}:{self.server.port}/ws", open_timeout=5) as websocket:
            try:
                websocket.recv(NEVER)
            except ConnectionClosed as closed:
                code = "no frame" if closed.rcvd is None else str(closed.rcvd.code)
                return f"{code} at {self._since():.1f} s"
            except TimeoutError:
                return "**kept**"
        return "a message"

    def _exit(self) -> str:
        try:
            code = self.server.wait(2 * NEVER)
        except ServerError:
            return "**never**"
        return f"{code} at {self._since():.1f} s"


def sigterm(kind: Kind, *, ours: bool) -> dict[str, str]:
    """One row of the table of stops."""
    server = kind.start(ours=ours, keep_alive=60, workers=6)
    try:
        row = _Stop(server, websocket=kind.app == ASGI).rows()
    finally:
        server.kill()
    if kind.one_at_a_time:  # it keeps no connection
        row |= {"idle, kept": "-", "request on idle +0.5 s": "-"}
    return row


@contextlib.contextmanager
def _serving(kind: Kind, ours: bool, keep_alive: int) -> Any:
    server = kind.start(ours=ours, keep_alive=keep_alive)
    try:
        yield server
    finally:
        server.kill()


def _on(server: Server, job: Callable[[Server], str]) -> Callable[[], str]:
    return lambda: job(server)


def _together(jobs: dict[str, Callable[[], str]]) -> dict[str, str]:
    row = {}

    def run(name: str, job: Callable[[], str]) -> None:
        try:
            row[name] = job()
        except Exception as error:
            row[name] = type(error).__name__

    threads = [threading.Thread(target=run, args=item) for item in jobs.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: row[name] for name in jobs}


TABLES = {"slow": slow_clients, "stop": sigterm}

QUICK = ("uvicorn httptools", "gunicorn gthread", "waitress")

PAGE = ROOT / "docs" / "benchmarks" / "timeouts-and-sigterm.md"
OF_GUNICORN = ROOT / "docs" / "gunicorn.md"


def measured(table: str, names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return a table's head and rows, printing each row when it is there."""
    seen: list[tuple[str, str, dict[str, str]]] = []
    for name in names:
        for ours in (False, True):
            kind = KINDS[name]
            row = TABLES[table](kind, ours=ours)
            seen.append((name, kind.runner if ours else "none", row))
            print(f"{table}: {' | '.join((*seen[-1][:2], *row.values()))}", flush=True)
    columns = list(dict.fromkeys(column for _, _, row in seen for column in row))
    head = ["server", "runner", *columns]
    rows = [[name, runner, *(row.get(c, "-") for c in columns)] for name, runner, row in seen]
    return head, rows


def main(argv: list[str] | None = None) -> int:
    """Print the tables, and put them into the pages if that is wanted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--server", choices=list(KINDS), action="append")
    parser.add_argument("--table", choices=list(TABLES), action="append")
    parser.add_argument("--quick", action="store_true", help="three servers only")
    parser.add_argument("--write", action="store_true", help=f"fill {PAGE.relative_to(ROOT)}")
    given = parser.parse_args(argv)
    names = given.server or (QUICK if given.quick else list(KINDS))
    for which in given.table or TABLES:
        head, rows = measured(which, names)
        print("\n" + table(head, rows) + "\n", flush=True)
        if given.write:
            fill(PAGE, which, table(head, rows))
            if of_gunicorn := [row for row in rows if row[0].startswith("gunicorn")]:
                fill(OF_GUNICORN, which, table(head, of_gunicorn))
    return 0


if __name__ == "__main__":
    sys.exit(main())

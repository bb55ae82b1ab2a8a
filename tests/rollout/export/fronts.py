"""Two stacks that tell what they were asked, and the front proxies that stand before them."""

from __future__ import annotations

import http.client
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import parse_headers
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

from benchmarks.process import Server, free_port
from resilience_mw.core.rollout import RolloutRule, Share
from resilience_mw.rollout.export import Plan, haproxy, nginx

WRITERS: dict[str, Callable[..., list[str]]] = {"nginx": nginx, "haproxy": haproxy}


@contextmanager
def stack(name: str) -> Iterator[str]:
    """Serve a stack that answers its name and the target it was asked for; yields host:port."""

    class Answer(StreamRequestHandler):
        disable_nagle_algorithm = True

        def handle(self) -> None:
            while request := self.rfile.readline():
                target = request.split(b" ")[1].decode("latin-1")
                headers = parse_headers(self.rfile)
                facts = (name, target, headers["x-forwarded-for"], headers["upgrade"])
                body = " ".join(map(str, facts)).encode("latin-1")
                self.wfile.write(
                    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                )

    class Quiet(ThreadingTCPServer):
        daemon_threads = True
        # Its threads sit on connections that a front proxy keeps open.
        block_on_close = False

    server = Quiet(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Front:
    """A front proxy with an exported configuration."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

    def ask(self, target: str, method: str = "GET", **headers: str) -> str:
        """Return which stack answered; ``_`` in the names of headers are dashes."""
        return self.told(target, method, **headers).partition(" ")[0]

    def told(self, target: str, method: str = "GET", **headers: str) -> str:
        """Return what the stack tells of the request."""
        self._connection.putrequest(method, target, skip_host="Host" in headers)
        for name, value in headers.items():
            self._connection.putheader(name.replace("_", "-"), value)
        if method == "POST":
            self._connection.putheader("Content-Length", "0")
        self._connection.endheaders()
        response = self._connection.getresponse()
        assert response.status == 200, response.status
        return response.read().decode("latin-1")

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


def configure(kind: str, plan: Plan, folder: Path, port: int) -> list[str]:
    """Write the files of a front proxy, and return the command that starts it."""
    exported = folder / f"{kind}-exported.conf"
    exported.write_text("\n".join(WRITERS[kind](plan, listen=f"127.0.0.1:{port}")) + "\n")
    if kind == "haproxy":
        return ["haproxy", "-db", "-f", str(exported)]
    own = folder / "nginx.conf"
    own.write_text(
        ("user root;\n" if os.geteuid() == 0 else "")
        + f"pid {folder}/nginx.pid;\ndaemon off;\nworker_processes 1;\n"
        + "error_log stderr warn;\nevents {}\n"
        + f"http {{\n    access_log off;\n    include {exported};\n"
        + "".join(
            f"    {part}_temp_path {folder}/{part};\n"
            for part in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        + "}\n"
    )
    return ["nginx", "-p", str(folder), "-c", str(own)]


@contextmanager
def fronted(
    kind: str,
    rules: Sequence[RolloutRule],
    folder: Path,
    shares: dict[str, Share] | None = None,
    server_name: str | None = "web-1",
) -> Iterator[Front]:
    """Start both stacks and a front proxy with the rules."""
    with stack("old") as old, stack("new") as new:
        plan = Plan(rules, shares or {}, old, new, server_name)
        port = free_port()
        with Server(configure(kind, plan, folder, port), port) as server:
            server.wait_until_serving()
            front = Front(port)
            try:
                yield front
            finally:
                front.close()

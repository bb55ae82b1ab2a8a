"""A chain of three processes, and the eyes of the balancer before it."""

from __future__ import annotations

import http.client
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import trustme

from benchmarks.process import HOST, Server, free_port

INTERVAL = 0.3
TIMEOUT = 0.5
"""Seconds, of the check that the tier in the middle makes."""

PATIENCE = 15.0
"""Seconds after which a view that has not turned counts as wrong, on a machine that is shared."""

NGINX = """
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr error;
events {{ worker_connections 64; }}
http {{
    access_log off;
    server {{
        listen {host}:{port};
        location / {{
            proxy_pass http://{host}:{tier};
            proxy_connect_timeout 1s;
            proxy_read_timeout 1s;
        }}
    }}
}}
"""


class Chain:
    """nginx, the tier in the middle, and the back end.

    Args:
        launch: starts the tier, with `env=`.
        secure: whether the back end speaks TLS.
        failure: what the tier answers without an answer of the back end.
    """

    def __init__(
        self, launch: Callable[..., Server], *, secure: bool = False, failure: int = 503
    ) -> None:
        self._stack = ExitStack()
        folder = self._stack.enter_context(tempfile.TemporaryDirectory())
        self.folder = Path(folder)
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(str(self.folder / "ca.pem"))
        self._back_end_port = free_port()
        self.mode("ok")
        if secure:
            self.certify(self.authority, "localhost")
        scheme = "https" if secure else "http"
        env = {
            "BACKEND": f"{scheme}://localhost:{self._back_end_port}/status",
            "CA": str(self.folder / "ca.pem") if secure else "",
            "INTERVAL": str(INTERVAL),
            "TIMEOUT": str(TIMEOUT),
            "FAILURE": str(failure),
            "NO_DNS": str(self.folder / "no-dns"),
        }
        try:
            self.start_back_end()
            self.tier = self._stack.enter_context(launch(env=env))
            self.nginx = self._stack.enter_context(self._nginx())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all three."""
        if self.back_end.running:
            self.back_end.stop()
        self._stack.close()

    def mode(self, name: str) -> None:
        """Make the back end behave so, from the next connection on."""
        (self.folder / "mode").write_text(name)

    def certify(self, authority: trustme.CA, name: str) -> None:
        """Give the back end a certificate."""
        pem = authority.issue_cert(name).private_key_and_cert_chain_pem
        fresh = self.folder / "server.pem.new"
        pem.write_to_path(str(fresh))
        fresh.replace(self.folder / "server.pem")

    def start_back_end(self) -> None:
        """On the same port each time."""
        port = self._back_end_port
        command = [sys.executable, "-m", "tests.health.chain.backend", str(port), str(self.folder)]
        self.back_end = Server(command, port)
        until = time.monotonic() + PATIENCE
        while self.back_end.running and time.monotonic() < until:
            if "LISTEN" in _states(self.back_end):
                return
            time.sleep(0.02)
        raise AssertionError(f"no back end: {self.back_end.output()}")

    def get(self, path: str = "/status", *, port: int | None = None) -> int:
        """Ask nginx as the balancer did, which allows one second; 0 = no answer in it."""
        client = http.client.HTTPConnection(HOST, port or self.nginx.port, timeout=1.0)
        try:
            client.request("GET", path)
            return client.getresponse().status
        except OSError:
            return 0
        finally:
            client.close()

    def turned(self, status: int) -> float:
        """Ask until the status is this one; return the seconds it took."""
        started = time.monotonic()
        seen = []
        while time.monotonic() - started < PATIENCE:
            seen.append(self.get())
            if seen[-1] == status:
                return time.monotonic() - started
            time.sleep(0.05)
        raise AssertionError(f"the balancer sees {seen[-5:]}, not {status}")

    def _nginx(self) -> Server:
        port = free_port()
        conf = self.folder / "nginx.conf"
        conf.write_text(NGINX.format(host=HOST, port=port, tier=self.tier.port))
        program = shutil.which("nginx")
        assert program is not None
        server = Server([program, "-e", "stderr", "-p", str(self.folder), "-c", str(conf)], port)
        server.wait_until_serving()
        return server


def _states(server: Server) -> set[str]:
    import psutil

    connections = psutil.Process(server.pid).net_connections("inet")
    return {str(connection.status) for connection in connections}

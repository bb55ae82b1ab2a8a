"""A new stack in a process of its own, behind a proxy."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resilience_mw import ConfigError, RolloutRule

from .drivers import DRIVERS, rule_of

RULES = [RolloutRule("r", path="/a", percent=100)]
pytestmark = pytest.mark.parametrize("driver", DRIVERS)


class Upstream(http.server.BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Say path and host, or refuse."""
        busy = self.headers.get("X-Want") == "busy"
        body = f"new {self.path} {self.headers['Host']}".encode()
        self.send_response(503 if busy else 200)
        if busy:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def upstream() -> Iterator[str]:
    """The URL of a new stack."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def nobody() -> str:
    """The URL of a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def in_front_of(driver: Any) -> Iterator[Callable[..., Any]]:
    """Make a middleware with the old stack here and the new one there; close it afterwards."""
    made = []

    def make(url: str, **options: Any) -> Any:
        made.append(driver.Middleware(driver.app("old"), new=url, rules=RULES, **options))
        return made[-1]

    yield make
    for app in made:
        app.close()


def test_requests_reach_the_process(driver: Any, in_front_of: Any, upstream: str):
    """With the path and host that the client wrote; the rest stays here."""
    app = in_front_of(upstream, variant_header="X-Stack")
    answer = driver.get(app, "/a")
    assert (answer.status, answer.text) == (200, "new /a example.org")
    assert answer.headers["x-stack"] == "new"
    assert driver.get(app, "/b").text == "old"


def test_its_refusals_are_counted_as_such(driver: Any, in_front_of: Any, upstream: str):
    """What its own guard says passes the proxy."""
    app = in_front_of(upstream)
    assert driver.get(app, "/a", headers={"X-Want": "busy"}).status == 503
    new = rule_of(app).new
    assert (new.requests, new.errors, new.refusals) == (1, 0, 1)


def test_a_process_that_is_away_is_an_error(driver: Any, in_front_of: Any, nobody: str):
    """502, and counted."""
    app = in_front_of(nobody)
    assert driver.get(app, "/a").status == 502
    assert (rule_of(app).new.requests, rule_of(app).new.errors) == (1, 1)


def test_the_old_stack_stands_in_for_a_process_that_is_away(
    driver: Any, in_front_of: Any, nobody: str
):
    """Where fallback is on, and the method safe."""
    app = in_front_of(nobody, fallback=True)
    assert driver.get(app, "/a").text == "old"
    assert driver.get(app, "/a", method="POST").status == 502
    new = rule_of(app).new
    assert (new.requests, new.errors, new.fallbacks) == (2, 2, 1)


@pytest.mark.parametrize("url", ["http://", "http://127.0.0.1:99999", "http://a/b?c"])
def test_a_wrong_address_is_one_line(in_front_of: Any, url: str):
    """At the start, not at the first request."""
    with pytest.raises(ConfigError) as error:
        in_front_of(url)
    assert "\n" not in str(error.value)

"""What the way through the reverse proxy of a roll-out costs: time, and memory for large bodies.

    python -m benchmarks.rollout_proxy              # prints the table: about a minute
    python -m benchmarks.rollout_proxy --write      # and puts it into docs/rollout-proxy.md

Real processes on loopback: Uvicorn as the upstream; before it Uvicorn, or Gunicorn's `gthread`,
with nothing but the proxy in it. The same requests go to the upstream directly and through the
front, by turns, on one connection. Memory is the most that all processes of the front have held,
less what they had held before the bodies.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.filling import fill, table
from benchmarks.process import ROOT, Server
from benchmarks.servers import gunicorn, uvicorn

PAGE = ROOT / "docs" / "rollout-proxy.md"
HERE = "benchmarks.rollout_proxy:"
MEBIBYTE = 1 << 20
ROUNDS = 20
HEAD = (
    "front",
    "direct, median",
    "through, median",
    "added",
    "down",
    "up",
    "memory grew by",
)


async def upstream(scope: Any, receive: Any, send: Any) -> None:
    """Send as many bytes as the query says, after reading the body."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    left = int(scope["query_string"] or b"2")
    length = (b"content-length", b"%d" % left)
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    while left > 0:
        chunk = bytes(min(left, 65_536))
        left -= len(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": left > 0})


def __getattr__(name: str) -> Any:
    """Make the front's app in the process that asks for it, and the extra's packages with it."""
    if name == "asgi":
        from resilience_mw.rollout.proxy.asgi import proxy as asgi_proxy

        return asgi_proxy(os.environ["UPSTREAM"])
    if name == "wsgi":
        from resilience_mw.rollout.proxy.wsgi import proxy as wsgi_proxy

        return wsgi_proxy(os.environ["UPSTREAM"])
    raise AttributeError(name)


def small(server: Server, count: int) -> list[float]:
    """Return the seconds of so many small requests, one after the other."""
    client = http.client.HTTPConnection(server.host, server.port, timeout=30)
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        client.request("GET", "/")
        client.getresponse().read()
        took.append(time.perf_counter() - begun)
    client.close()
    return took


def large(server: Server, size: int, *, up: bool) -> float:
    """Return MiB a second of one large body."""
    client = http.client.HTTPConnection(server.host, server.port, timeout=60)
    begun = time.perf_counter()
    if up:
        chunk = bytes(MEBIBYTE)
        body = (chunk for _ in range(size // MEBIBYTE))
        client.request("POST", "/", body, {"Content-Length": str(size)})
    else:
        client.request("GET", f"/?{size}")
    response = client.getresponse()
    while response.read(MEBIBYTE):
        pass
    client.close()
    return size / MEBIBYTE / (time.perf_counter() - begun)


def most_memory(server: Server) -> int:
    """Return the most bytes that the processes of a server have held."""
    pids = [server.pid, *(worker.pid for worker in server.workers())]
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
    found = [re.search(r"VmHWM:\s+(\d+) kB", status) for status in statuses]
    return sum(int(match[1]) * 1024 for match in found if match)


def measure(name: str, front: Server, back: Server, requests: int, size: int) -> list[str]:
    """Return one line of the table."""
    direct: list[float] = []
    through: list[float] = []
    for _ in range(ROUNDS):
        direct += small(back, requests // ROUNDS)
        through += small(front, requests // ROUNDS)
    for up in (False, True):
        large(front, 4 * MEBIBYTE, up=up)
    before = most_memory(front)
    down, upwards = (large(front, size, up=up) for up in (False, True))
    grown = most_memory(front) - before
    near, far = statistics.median(direct), statistics.median(through)
    return [
        name,
        f"{near * 1e3:.2f} ms",
        f"{far * 1e3:.2f} ms",
        f"{(far - near) * 1e3:.2f} ms",
        f"{down:.0f} MiB/s",
        f"{upwards:.0f} MiB/s",
        f"{grown / MEBIBYTE:.1f} MiB",
    ]


def main() -> None:
    """Measure both fronts and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--size", type=int, default=1024, help="MiB of the large bodies")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    rows = []
    with uvicorn(HERE + "upstream") as back:
        env = {"UPSTREAM": back.url}
        fronts: dict[str, Callable[..., Server]] = {
            "Uvicorn": partial(uvicorn, HERE + "asgi"),
            "Gunicorn `gthread`": partial(gunicorn, HERE + "wsgi"),
        }
        for name, launch in fronts.items():
            with launch(env=env) as front:
                size = arguments.size * MEBIBYTE
                rows.append(measure(name, front, back, arguments.requests, size))
    text = table(HEAD, rows)
    print(text)
    if arguments.write:
        fill(PAGE, "proxy", text)


if __name__ == "__main__":
    main()

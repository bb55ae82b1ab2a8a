"""The shop on loopback: nginx before eight servers, each before both stacks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.process import HOST, ROOT, Server, free_port
from resilience_mw.core.rollout.hashing import place
from tests.rollout.redis_server import RedisServer

APPS = "tests.rollout.story.apps:"


def server_names() -> list[str]:
    """Return eight of nearly a hundred servers: 1, 2, 4 and 8 of them in at 2, 25, 50 and 100 %."""
    names = sorted((f"web-{number}" for number in range(97)), key=lambda n: place("favourites", n))
    chosen: list[str] = []
    for least, count in ((0, 1), (200, 1), (2500, 2), (5000, 4)):
        chosen += [name for name in names if place("favourites", name) >= least][:count]
    return chosen


def command(interface: str, app: str, port: int) -> list[str]:
    """Return what starts an app: Uvicorn, or Gunicorn with threads."""
    if interface == "asgi":
        uvicorn = [sys.executable, "-m", "uvicorn", "--factory", "--no-access-log"]
        return [*uvicorn, "--host", HOST, "--port", str(port), APPS + app]
    gunicorn = [sys.executable, "-m", "gunicorn", "--worker-class", "gthread", "--threads", "8"]
    return [*gunicorn, "--no-control-socket", "--bind", f"{HOST}:{port}", f"{APPS}{app}()"]


@contextmanager
def store_of(kind: str, folder: Path) -> Iterator[str]:
    """Yield the URL of a store."""
    if kind == "file":
        yield f"file:{folder / 'rollout.toml'}"
    else:
        with RedisServer() as server:
            yield server.url


@contextmanager
def shop(
    folder: Path, interface: str, store: str, *, servers: int = 8, window: float = 30.0
) -> Iterator[Server]:
    """Start it all at once, and yield nginx when everybody serves.

    Args:
        folder: for files; what stands in ``trouble`` there ails the new stack.
        interface: what the servers run, ``asgi`` or ``wsgi``.
        store: where the shares are.
        servers: how many there are.
        window: of the guard, in seconds.
    """
    (folder / "trouble").touch()
    with ExitStack() as stack:

        def start(line: Callable[[int], Sequence[str]], **env: str) -> Server:
            port = free_port()
            server = Server(line(port), port, env=env)
            stack.callback(server.stop)
            started.append(server)
            return server

        started: list[Server] = []
        stacks = {
            name: start(
                lambda port: [
                    *(sys.executable, "-m", "uvicorn", "--no-access-log"),
                    *("--host", HOST, "--port", str(port), f"{APPS}stack"),
                ],
                STACK=name,
                TROUBLE=str(folder / "trouble") if name == "new" else os.devnull,
            )
            for name in ("old", "new")
        }
        urls = {name.upper(): server.url for name, server in stacks.items()}
        tiers = [
            start(
                lambda port: command(interface, f"{interface}_server", port),
                SERVER=name,
                STORE=store,
                WINDOW=f"{window:g}",
                **urls,
            )
            for name in server_names()[:servers]
        ]
        for server in started:
            server.wait_until_serving(60.0)
        conf = folder / "nginx.conf"
        front = start(lambda port: _nginx(folder, conf, port, tiers))
        front.wait_until_serving()
        yield front


def _nginx(folder: Path, conf: Path, port: int, tiers: Sequence[Server]) -> list[str]:
    upstreams = "\n".join(f"server {HOST}:{tier.port} max_fails=0;" for tier in tiers)
    temporary = "\n".join(
        f"{part}_temp_path {folder}/{part};"
        for part in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    # No second try at another server: what fails is to be seen.
    conf.write_text(
        f"""{user}
        pid {folder}/nginx.pid; daemon off; worker_processes 1; error_log stderr warn;
        events {{}}
        http {{
            access_log off;
            {temporary}
            upstream servers {{ {upstreams} keepalive 64; }}
            server {{
                listen {HOST}:{port};
                location / {{
                    proxy_pass http://servers;
                    proxy_http_version 1.1;
                    proxy_set_header Connection "";
                    proxy_set_header Host $http_host;
                    proxy_next_upstream off;
                }}
            }}
        }}
        """
    )
    return ["nginx", "-p", str(folder), "-c", str(conf)]


def rollout(store: str, *arguments: str) -> float:
    """Run `resilience-mw rollout` as a person would; returns when it had ended."""
    subprocess.run(
        [sys.executable, "-m", "resilience_mw", "rollout", *arguments, "--store", store],
        check=True,
        cwd=ROOT,
        capture_output=True,
        timeout=30,
    )
    return time.monotonic()

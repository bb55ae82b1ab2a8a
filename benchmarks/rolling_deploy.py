"""Replace two instances behind a real load balancer, one after the other, and count who noticed.

    python -m benchmarks.rolling_deploy              # every setup, three rounds: some minutes
    python -m benchmarks.rolling_deploy --rounds 1 --balancer haproxy --setup uvicorn

The balancers run the files of `examples/deploy`, with other ports. They send a request that an
instance refuses to the other one, which hides much; `haproxy-once` does not, as most balancers of
clouds and the services of Kubernetes do not. Half of the load keeps its connections, the other
half opens one for every request.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import Load, Record, Target, open_loop, run
from benchmarks.process import HOST, ROOT, Server, free_port

DEPLOY = ROOT / "examples" / "deploy"

BALANCERS = ("haproxy", "haproxy-once", "nginx")

SECOND_TRY = re.compile(r"^ *(retries|option redispatch|retry-on) .*$", re.MULTILINE)
"""The lines of HAProxy's file that give a request a second chance."""

ASGI = "benchmarks.apps.asgi:app"
WSGI = "benchmarks.apps.wsgi:app"
OURS = ["-c", "python:resilience_mw.runner.gunicorn"]


@dataclass(frozen=True)
class Setup:
    """A server, without and with our runner.

    Attributes:
        plain, ours: the arguments after the interpreter, but for the port.
        app: the app's import string.
    """

    plain: tuple[str, ...]
    ours: tuple[str, ...]
    app: str

    def command(self, port: int, *, ours: bool) -> list[str]:
        """Return the whole command for a port."""
        words = self.ours if ours else self.plain
        where = ["--bind", f"{HOST}:{port}"] if "gunicorn" in words else ["--port", str(port)]
        return [sys.executable, "-m", *words, *where, self.app]


def _gunicorn(app: str, *flags: str) -> Setup:
    words = ("gunicorn", "--no-control-socket", *flags)
    return Setup(words, (*words, *OURS), app)


SETUPS = {
    "uvicorn": Setup(("uvicorn", "--no-access-log"), ("resilience_mw", "run"), ASGI),
    "gunicorn asgi": _gunicorn(ASGI, "--worker-class", "asgi"),
    "gunicorn uvicorn-worker": _gunicorn(ASGI, "--worker-class", "uvicorn_worker.UvicornWorker"),
    "gunicorn gthread": _gunicorn(WSGI, "--threads", "16"),
    "gunicorn gevent": _gunicorn(WSGI, "--worker-class", "gevent"),
    "gunicorn sync": _gunicorn(WSGI, "--workers", "8"),
}


@dataclass(frozen=True)
class Outcome:
    """What clients saw.

    Attributes:
        sent: requests.
        failed: those that were not answered with 200, by what happened.
        replaced: how many times an instance was.
        slowest: the longest latency of an answered one, in seconds.
    """

    sent: int
    failed: dict[str, int]
    replaced: int
    slowest: float


@contextlib.contextmanager
def balancer(kind: str, ports: tuple[int, int], *, check: str) -> Iterator[Server]:
    """Run a balancer before two instances.

    Args:
        kind: one of `BALANCERS`.
        ports: of the instances.
        check: the path that HAProxy asks whether an instance is there.
    """
    front = free_port()
    name = "nginx.conf" if kind == "nginx" else "haproxy.cfg"
    text = (DEPLOY / name).read_text()
    for old, new in (("8080", front), ("8001", ports[0]), ("8002", ports[1])):
        text = text.replace(f"{HOST}:{old}", f"{HOST}:{new}")
    text = text.replace("GET /readyz", f"GET {check}")
    if kind == "haproxy-once":
        text = SECOND_TRY.sub("", text).replace("defaults\n", "defaults\n    retries 0\n", 1)
    program = shutil.which("nginx" if kind == "nginx" else "haproxy")
    if program is None:
        raise FileNotFoundError(f"{kind} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder) / name
        conf.write_text(text)
        command = [program, "-db", "-f", str(conf)]
        if kind == "nginx":
            command = [program, "-p", folder, "-c", str(conf), "-g", "daemon off;"]
        with Server(command, front) as server:
            server.wait_until_serving()
            yield server


class Instances:
    """Two instances, each replaced when told.

    Args:
        command: makes the arguments for a port.
        delay: the drain delay of ours, in seconds.
    """

    def __init__(self, command: Callable[[int], list[str]], delay: float) -> None:
        self.ports = (free_port(), free_port())
        self.replaced = 0
        self._command = command
        self._env = {
            "RESILIENCE_RUNNER_DRAIN_DELAY": str(delay),
            # The load is light; what is measured here is the replacement.
            "RESILIENCE_BACKPRESSURE_ENABLED": "false",
        }
        self._servers = [self._start(port) for port in self.ports]

    def _start(self, port: int) -> Server:
        server = Server(self._command(port), port, env=self._env)
        server.wait_until_serving()
        return server

    def replace(self, number: int) -> None:
        """Stop an instance, wait for its end, and start another on the same port."""
        self._servers[number].signal(signal.SIGTERM)
        self._servers[number].wait(40.0)
        self._servers[number] = self._start(self.ports[number])
        self.replaced += 1

    def close(self) -> None:
        """Stop both."""
        for server in self._servers:
            server.kill()


def roll(
    setup: Setup,
    kind: str,
    *,
    ours: bool,
    rounds: int = 3,
    rate: float = 100.0,
    delay: float = 1.5,
    settle: float = 2.0,
) -> Outcome:
    """Replace each instance `rounds` times under load.

    Args:
        setup: what to deploy.
        kind: the balancer.
        ours: with our runner.
        rounds: how often each instance is replaced.
        rate: requests a second.
        delay: seconds; long enough for the balancer to notice.
        settle: seconds after a replacement until the next, for the balancer's checks to succeed.
    """
    instances = Instances(lambda port: setup.command(port, ours=ours), delay)
    try:
        check = "/readyz" if ours else "/hello"
        with balancer(kind, instances.ports, check=check) as front:
            time.sleep(settle)
            target = Target(front.host, front.port, "/io")
            seconds = rounds * 2 * (delay + settle + 2.5)
            records = run(_under_load(target, instances, rounds, rate, seconds, settle))
    finally:
        instances.close()
    failed = Counter(str(record.outcome) for record in records if record.outcome != 200)
    slowest = max((record.latency for record in records if record.outcome == 200), default=0.0)
    return Outcome(len(records), dict(failed), instances.replaced, slowest)


async def _under_load(
    target: Target, instances: Instances, rounds: int, rate: float, seconds: float, settle: float
) -> list[Record]:
    loads = [
        open_loop(target, Load.steady(rate / 2, seconds, reuse=reuse, patience=10.0))
        for reuse in (True, False)
    ]
    replacing = asyncio.create_task(asyncio.to_thread(_replace, instances, rounds, settle))
    records = [record for part in await asyncio.gather(*loads) for record in part]
    await replacing
    return records


def _replace(instances: Instances, rounds: int, settle: float) -> None:
    time.sleep(1.0)
    for _ in range(rounds):
        for number in (0, 1):
            instances.replace(number)
            time.sleep(settle)


def main(argv: list[str] | None = None) -> int:
    """Print a table: requests that failed, without and with our runner."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--balancer", choices=BALANCERS, action="append")
    parser.add_argument("--setup", choices=list(SETUPS), action="append")
    given = parser.parse_args(argv)
    print("| balancer | server | runner | requests | failed | how | slowest 200 |")
    print("|---|---|---|---|---|---|---|")
    lost = 0
    for kind in given.balancer or BALANCERS:
        for name in given.setup or SETUPS:
            for ours in (False, True):
                seen = roll(SETUPS[name], kind, ours=ours, rounds=given.rounds, rate=given.rate)
                failed = sum(seen.failed.values())
                lost += failed * ours
                how = ", ".join(f"{count} x {what}" for what, count in seen.failed.items())
                runner = "ours" if ours else "none"
                row = f"| {kind} | {name} | {runner} | {seen.sent} | {failed} | {how or '-'}"
                print(f"{row} | {seen.slowest:.2f} s |", flush=True)
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())

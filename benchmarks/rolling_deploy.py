"""Replace two instances behind a real load balancer, one after the other, and count who noticed.

    python -m benchmarks.rolling_deploy --write      # every setup, three rounds: 40 minutes
    python -m benchmarks.rolling_deploy --quick      # two setups, one round: 3 minutes
    python -m benchmarks.rolling_deploy --rounds 1 --balancer haproxy --setup uvicorn

The balancers run the files of `examples/deploy`, with other ports. They send a request that an
instance refuses to the other one, which hides much; `haproxy-once` does not, as most balancers of
clouds and the services of Kubernetes do not. Half of the load keeps its connections, the other
half opens one for every request.

A check that asks in band waits behind requests: when one of two instances is down and the other is
full, or the machine has other work, it takes longer than the balancer waits, and nobody is left. So
with our runner HAProxy asks on a port of its own (`health.port`); `--in-band` does without.
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
from functools import partial
from pathlib import Path

from benchmarks.filling import fill, table
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

QUICK = ("uvicorn", "gunicorn gthread")

PAGE = ROOT / "docs" / "benchmarks" / "rolling-deploy.md"

HEAD = ("balancer", "server", "runner", "requests", "failed", "how", "slowest 200")


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
def balancer(
    kind: str, ports: tuple[int, int], *, check: str, probes: tuple[int, int] | None = None
) -> Iterator[Server]:
    """Run a balancer before two instances.

    Args:
        kind: one of `BALANCERS`.
        ports: of the instances.
        check: the path that HAProxy asks whether an instance is there.
        probes: where it asks, if not on the instances' own ports.
    """
    front = free_port()
    name = "nginx.conf" if kind == "nginx" else "haproxy.cfg"
    text = (DEPLOY / name).read_text()
    for old, new in (("8080", front), ("8001", ports[0]), ("8002", ports[1])):
        text = text.replace(f"{HOST}:{old}", f"{HOST}:{new}")
    text = text.replace("GET /readyz", f"GET {check}")
    for port, probe in zip(ports, probes or (), strict=False):
        text = text.replace(f"{HOST}:{port}\n", f"{HOST}:{port} port {probe}\n")
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
        apart: whether probes have a port of their own.
    """

    def __init__(
        self, command: Callable[[int], list[str]], delay: float, *, apart: bool = False
    ) -> None:
        self.ports = (free_port(), free_port())
        self.probes = (free_port(), free_port()) if apart else None
        self.replaced = 0
        self._command = command
        self._env = {
            "RESILIENCE_RUNNER_DRAIN_DELAY": str(delay),
            # The load is light; what is measured here is the replacement.
            "RESILIENCE_BACKPRESSURE_ENABLED": "false",
        }
        self._servers = [self._start(number) for number in (0, 1)]

    def _start(self, number: int) -> Server:
        port, env = self.ports[number], self._env
        if self.probes is not None:
            own = {"RESILIENCE_HEALTH_PORT": str(self.probes[number])}
            env = {**env, **own, "RESILIENCE_HEALTH_HOST": HOST}
        server = Server(self._command(port), port, env=env)
        server.wait_until_serving()
        return server

    def replace(self, number: int) -> None:
        """Stop an instance, wait for its end, and start another on the same port."""
        self._servers[number].signal(signal.SIGTERM)
        self._servers[number].wait(40.0)
        self._servers[number] = self._start(number)
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
    apart: bool = True,
) -> Outcome:
    """Replace each instance `rounds` times under load.

    Args:
        setup: what to deploy.
        kind: the balancer.
        ours: with our runner.
        rounds: how often each instance is replaced.
        rate: requests a second.
        delay: seconds; long enough for the balancer to notice.
        apart: let HAProxy ask our runner on a port of its own.
        settle: seconds after a replacement until the next, for the balancer's checks to succeed.
    """
    command = partial(setup.command, ours=ours)
    instances = Instances(command, delay, apart=ours and apart)
    try:
        check = "/readyz" if ours else "/hello"
        with balancer(kind, instances.ports, check=check, probes=instances.probes) as front:
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
    """Make a table: requests that failed, without and with our runner."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--balancer", choices=BALANCERS, action="append")
    parser.add_argument("--setup", choices=list(SETUPS), action="append")
    parser.add_argument("--in-band", action="store_true", help="let HAProxy ask the app's port")
    parser.add_argument("--quick", action="store_true", help="two setups, one round")
    parser.add_argument("--write", action="store_true", help=f"fill {PAGE.relative_to(ROOT)}")
    given = parser.parse_args(argv)
    rounds = given.rounds or (1 if given.quick else 3)
    lost = 0
    rows = []
    for kind in given.balancer or BALANCERS:
        for name in given.setup or (QUICK if given.quick else SETUPS):
            for ours in (False, True):
                options = {"rounds": rounds, "rate": given.rate, "apart": not given.in_band}
                seen = roll(SETUPS[name], kind, ours=ours, **options)
                failed = sum(seen.failed.values())
                lost += failed * ours
                how = ", ".join(f"{count} x {what}" for what, count in seen.failed.items())
                runner = "ours" if ours else "none"
                row = [kind, name, runner, str(seen.sent), str(failed), how or "-"]
                rows.append([*row, f"{seen.slowest:.2f} s"])
                print(" | ".join(rows[-1]), flush=True)
    print("\n" + table(HEAD, rows))
    if given.write:
        fill(PAGE, "deploys", table(HEAD, _with_rest(rows)))
    return int(lost > 0)


def _with_rest(rows: list[list[str]]) -> list[list[str]]:
    """Add what the page has of balancers and setups that were not measured now."""
    kinds, names = list(BALANCERS), list(SETUPS)
    written = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines()]
    known = [row for row in written if len(row) == len(HEAD) and row[0] in kinds]
    measured = {tuple(row[:3]) for row in rows}
    both = [*rows, *(row for row in known if tuple(row[:3]) not in measured)]
    return sorted(both, key=lambda row: (kinds.index(row[0]), names.index(row[1]), row[2]))


if __name__ == "__main__":
    sys.exit(main())

"""How soon every process follows a change of a roll-out's share, and what following costs.

    python -m benchmarks.rollout_store                  # prints the table: about a minute
    python -m benchmarks.rollout_store --write          # and puts it into docs/rollout-store.md

Real processes follow a file, and a real Redis on loopback. One command at a time changes the
share; each process says when it had it, by the clock that all share.
"""

from __future__ import annotations

import argparse
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any

from benchmarks.filling import fill, table
from benchmarks.process import HOST, ROOT, Server, free_port
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.follower import Follower
from resilience_mw.rollout.stores import open_store

RULE = "favourites"
PAGE = ROOT / "docs" / "rollout-store.md"
COMMAND = (sys.executable, "-m", "resilience_mw", "rollout")
HEAD = (
    "store",
    "command",
    "last process, median",
    "last process, most",
    "CPU to follow, a process",
)


def follow(url: str, told: Any, stop: Any) -> None:
    """Follow a store in a process; tell each share and when it was there, and the CPU at last."""

    def apply(shares: Mapping[str, Share]) -> None:
        told.put((shares[RULE].percent, time.monotonic()))

    follower = Follower(open_store(url), apply)
    follower.start(wait=20)
    begun, cpu = time.monotonic(), time.process_time()
    stop.wait()
    spent = (time.process_time() - cpu) / (time.monotonic() - begun)
    told.put((None, spent))
    follower.close()


def measure(url: str, processes: int, rounds: int) -> tuple[list[float], list[float], float]:
    """Return the seconds of each command, those until the last process had it, and the CPU."""
    open_store(url).change(RULE, 0, who="benchmark")
    context = multiprocessing.get_context("spawn")
    told, stop = context.Queue(), context.Event()
    children = [context.Process(target=follow, args=(url, told, stop)) for _ in range(processes)]
    for child in children:
        child.start()
    _receive(told, 0, processes)
    commands, effects = [], []
    for number in range(1, rounds + 1):
        # Not in step with what looks at the store a few times a second.
        time.sleep(0.5 + 0.037 * number % 0.4)
        percent = number % 25 + 1
        begun = time.monotonic()
        subprocess.run(
            [*COMMAND, "--store", url, "set", RULE, str(percent), "--yes"],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        commands.append(time.monotonic() - begun)
        effects.append(_receive(told, percent, processes) - begun)
    time.sleep(5)
    stop.set()
    spent = [told.get(timeout=30)[1] for _ in children]
    for child in children:
        child.join(30)
    return commands, effects, sum(spent) / processes


def _receive(told: Any, percent: float, processes: int) -> float:
    """Wait until all processes have told a share; return when the last one had it."""
    moments: list[float] = []
    while len(moments) < processes:
        try:
            said, moment = told.get(timeout=60)
        except Empty:
            raise SystemExit(f"only {len(moments)} of {processes} processes followed") from None
        if said == percent:
            moments.append(moment)
    return float(max(moments))


@contextmanager
def redis() -> Iterator[str]:
    """Run a Redis for as long as it is needed."""
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        command = ["redis-server", "--port", str(port), "--bind", HOST, "--save", ""]
        server = Server(command, port, cwd=Path(directory))
        try:
            server.wait_until_serving()
            yield f"redis://{HOST}:{port}/0"
        finally:
            server.kill()


def row(name: str, figures: tuple[list[float], list[float], float]) -> list[str]:
    """Return what was measured on one store as a line of the table."""
    commands, effects, cpu = figures
    middle = sorted(effects)[len(effects) // 2]
    return [
        name,
        f"{sorted(commands)[len(commands) // 2]:.2f} s",
        f"{middle:.2f} s",
        f"{max(effects):.2f} s",
        f"{cpu:.2%}",
    ]


def main() -> None:
    """Measure both stores and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        url = f"file:{directory}/rollout.toml"
        rows = [row("file", measure(url, arguments.processes, arguments.rounds))]
    with redis() as url:
        rows.append(row("Redis", measure(url, arguments.processes, arguments.rounds)))
    text = table(HEAD, rows)
    print(text)
    if arguments.write:
        fill(PAGE, "following", text)


if __name__ == "__main__":
    main()

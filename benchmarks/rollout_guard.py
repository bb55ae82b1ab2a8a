"""When the guard of a roll-out trips, and when it does not, on simulated traffic.

    python -m benchmarks.rollout_guard [--healthy 1000] [--write]

First healthy new stacks of many kinds, none of which should trip it; then new stacks with a
trouble that begins when they do, and how many seconds of traffic show it. Time is virtual, so a
thousand runs take seconds; `Comparison` is the one that runs in production. ``--write`` puts the
figures into docs/rollout-guard.md.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import merge

from benchmarks.filling import ROOT, fill, table
from resilience_mw.core.rollout.comparison import Comparison, RolloutGuard, Verdict
from resilience_mw.core.rollout.exact import p_more
from resilience_mw.core.rollout.look import alpha

PAGE = ROOT / "docs" / "rollout-guard.md"

START = 1000.0
"""Where the virtual clock begins."""

LATENCIES: dict[str, Callable[[random.Random], float]] = {
    "even": lambda rng: 0.05 * rng.uniform(0.9, 1.1),
    "usual": lambda rng: 0.05 * math.exp(rng.gauss(0.0, 0.5)),
    "spread": lambda rng: 0.05 * rng.expovariate(1.0),
    "two kinds": lambda rng: (0.01 if rng.random() < 0.94 else 0.4) * rng.uniform(0.8, 1.2),
}
"""How long a request takes, by how it varies."""


@dataclass(frozen=True)
class Traffic:
    """What comes, and how both stacks deal with it."""

    rate: float = 100.0
    """Requests a second."""
    share: float = 0.5
    """Of the new stack."""
    latency: str = "usual"
    fails: float = 0.0
    """Share of the old stack's requests that fail."""
    more_fails: float = 0.0
    """And of the new one's, beyond that."""
    slower: float = 1.0
    hangs: bool = False
    """Whether no request of the new stack ever ends."""
    before: float = 60.0
    """Seconds of traffic on the old stack alone."""
    seconds: float = 60.0
    """Seconds with the new one."""


def events(traffic: Traffic, rng: random.Random) -> Iterator[tuple[float, bool, bool, float]]:
    """Yield begins and ends in order: when, whose, failed, and when what ends began, else -1."""
    draw, begins, ends = LATENCIES[traffic.latency], [], []
    at, new_from = START, START + traffic.before
    while (at := at + rng.expovariate(traffic.rate)) < new_from + traffic.seconds:
        new = at >= new_from and rng.random() < traffic.share
        begins.append((at, new, False, -1.0))
        if new and traffic.hangs:
            continue
        seconds = draw(rng) * (traffic.slower if new else 1.0)
        failed = rng.random() < traffic.fails + traffic.more_fails * new
        ends.append((at + seconds, new, failed, at))
    ends.sort()
    return merge(begins, ends)


def run(
    traffic: Traffic, seed: int, guard: RolloutGuard | None = None
) -> tuple[float, Verdict] | None:
    """Return after how many seconds of the new stack the guard trips, and why; ``None`` = not."""
    running: dict[bool, set[float]] = {True: set(), False: set()}
    comparison = Comparison(guard or RolloutGuard(), START, running.__getitem__)
    for at, new, failed, began in events(traffic, random.Random(seed)):
        if began < 0.0:
            running[new].add(at)
        else:
            running[new].remove(began)
            comparison.record(new, failed, at - began, at)
        found = comparison.verdict(at)
        if found is not None:
            return at - START - traffic.before, found
    return None


def healthy() -> list[Traffic]:
    """Return traffic of many kinds under which the new stack is as good as the old one."""
    return [
        Traffic(rate, share, latency, fails, before=before, seconds=90.0)
        for latency, fails, (rate, share), before in itertools.product(
            LATENCIES,
            (0.0, 0.003, 0.05),
            ((2.0, 0.5), (10.0, 0.5), (30.0, 0.02), (30.0, 0.5), (30.0, 0.98), (15.0, 1.0)),
            (0.0, 30.0),
        )
    ]


def false_trips(runs: int, seed: int = 1) -> list[tuple[Traffic, float, Verdict]]:
    """Return which of ``runs`` healthy roll-outs tripped the guard."""
    kinds = itertools.cycle(healthy())
    tripped = []
    for number, traffic in zip(range(runs), kinds, strict=False):
        if not traffic.before and traffic.share == 1.0:
            # Nothing is known of the old stack, so that there is a limit, which 5 % exceed.
            traffic = replace(traffic, fails=min(0.01, traffic.fails))
        found = run(traffic, seed * 1_000_000 + number)
        if found is not None:
            tripped.append((traffic, *found))
    return tripped


TROUBLES: dict[str, Traffic] = {
    "5 % more fail": Traffic(more_fails=0.05),
    "all fail": Traffic(more_fails=1.0),
    "hangs": Traffic(hangs=True),
    "2 times slower": Traffic(slower=2.0),
    "2 times slower, latencies spread": Traffic(slower=2.0, latency="spread"),
}
PLACES = [(20.0, 0.5), (100.0, 0.02), (100.0, 0.5), (100.0, 1.0), (500.0, 0.02)]
"""Requests a second, and the new stack's share of them."""


def seen(runs: int = 20) -> str:
    """Return a table: after how many seconds each trouble is seen, median and worst."""
    head = [f"{rate:g} a second, {100 * share:g} %" for rate, share in PLACES]
    rows = []
    for name, trouble in TROUBLES.items():
        cells = []
        for rate, share in PLACES:
            traffic = replace(trouble, rate=rate, share=share, seconds=120.0)
            found = [run(traffic, seed) for seed in range(runs)]
            times = sorted(math.inf if one is None else one[0] for one in found)
            cells.append(f"{_figure(statistics.median(times))} ({_figure(times[-1])})")
        rows.append([name, *cells])
    return table(["new stack", *head], rows)


def needed(total: int = 10_000) -> str:
    """Return a table: how many failures trip, if the old stack has none, by the new one's share."""
    least, rows = alpha(RolloutGuard()), []
    for share in (0.01, 0.02, 0.1, 0.25, 0.5):
        new = round(total * share)
        count = next(n for n in itertools.count(1) if p_more(n, new, 0, total - new) <= least)
        rows.append([f"{100 * share:g} %", f"{count}"])
    return table(["share of the new stack", "failures that are no chance"], rows)


def message() -> str:
    """Return what the log says of a new stack of which 5 % more fail."""
    found = run(Traffic(rate=200.0, share=0.02, more_fails=0.05), seed=3)
    said = found[1] if found else "nothing"
    return f"```text\nrollout rule favourites: taken back to 0 and held: {said}\n```"


def _figure(seconds: float) -> str:
    return "-" if math.isinf(seconds) else f"{seconds:.0f} s"


def main() -> None:
    """Print the figures of docs/rollout-guard.md, or put them there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--healthy", type=int, default=1000, help="healthy runs (1000)")
    parser.add_argument("--write", action="store_true", help="put the figures into the page")
    options = parser.parse_args()
    runs = options.healthy
    tripped = false_trips(runs)
    for traffic, after, verdict in tripped:
        print(f"after {after:.0f} s: {verdict} ({traffic})")
    figures = {
        "message": message(),
        "healthy": f"Of {runs:,} simulated roll-outs of healthy stacks, {len(tripped)} tripped.",
        "seen": seen(),
        "needed": needed(),
    }
    for name, text in figures.items():
        print(f"\n{text}")
        if options.write:
            fill(PAGE, name, text)


if __name__ == "__main__":
    main()

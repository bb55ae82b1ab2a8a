"""The page that says how we did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.load.summary import human
from benchmarks.overload import table
from benchmarks.overload.protections import PROTECTIONS
from benchmarks.overload.results import Results
from benchmarks.overload.terminal import percent
from benchmarks.overload.workloads import WORKLOADS

INTRODUCTION = """\
# Overload, measured

Written by `python -m benchmarks.overload`; do not edit. One worker on one CPU, the open-loop
generator (and Envoy) on another. Requests are sent at their intended times whatever the server
does, latencies count from there, and a client leaves after 5 s. *In time* is a 200 within 500 ms.
Every cell has a fresh server and a warm-up at half its capacity. Peers are measured between our
own runs, at multiples of what *their* server can do unprotected.

**G** is the most that anyone could serve who has to answer the rest: with L requests offered a
second, s CPU seconds a request and r a refusal, a full CPU gives G = (1 - L r) / (s - r), and no
more than the capacity. s and r are measured here: s on the unprotected server in a closed loop, r
on our own refusals with the only slot taken, on as many connections as an overload keeps open
(each costs twice as much as with a few, whose data stays in the CPU's caches). Under our own
runner a refusal is made in the protocol and costs less: it may pass 100 %. Envoy refuses on the
generator's CPU and Granian does not refuse at all but lets clients wait: neither pays r, so both
may pass 100 % of G.

**Goals** of each of our cells. Below capacity: at most 0.1 % refused. Above: at least 98 % of G in
time, a larger share of capacity than every peer, p99 of the 200s at most 1.3 times (2.5 times
where handlers await) the sum of `max_wait` and the unloaded latency, p99 of refusals at most
250 ms, nobody unanswered. They are about the whole run, its first instant included; *settled* is
what was sent after the first two seconds. A run is *disturbed* if others used more than 5 % of the
server's CPU or the generator was late by more than 20 ms (p99); it is made once more, and the
better one kept.
"""


def write_page(results: Results, path: Path, pictures: Sequence[Path]) -> Path:
    """Write the page beside the results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(_lines(results, pictures)) + "\n")
    return path


def _lines(results: Results, pictures: Sequence[Path]) -> Iterator[str]:
    yield INTRODUCTION
    yield from _summary(results)
    for picture in pictures:
        yield f"![{picture.stem.replace('-', ' ')}]({picture.name})\n"
    yield from _drills(results)
    yield "## What the servers can do\n"
    yield from _bases(results)
    yield "\n## Every cell\n"
    yield from _protections()
    for title, rows in table.groups(results):
        yield f"\n### {title}\n"
        yield from _table(table.HEADINGS, [table.row(result, results) for result in rows])
    yield "\n## Versions and machine\n"
    yield from _table(("what", "which"), list(results.machine.items()))


def _summary(results: Results) -> Iterator[str]:
    measured = list(table.all_goals(results))
    if not measured:
        return
    total = Counter(goal.name for _, goal in measured)
    met = Counter(goal.name for _, goal in measured if goal.met)
    yield "## Goals\n"
    yield from _table(
        ("goal", "met", "short"),
        [(name, f"{met[name]} of {total[name]}", str(total[name] - met[name])) for name in total],
    )
    short = [(about, goal) for about, goal in measured if not goal.met]
    yield "\n### Short\n"
    yield from _table(
        ("where", "goal", "reached"), [(about, goal.name, goal.short) for about, goal in short]
    )
    sessions = sorted({result.session for result in results.cells.values()})
    yield f"\nMeasured in {len(sessions)} session(s), begun at {', '.join(sessions)} UTC.\n"


def _drills(results: Results) -> Iterator[str]:
    if not results.drills:
        return
    yield "## Drills\n"
    yield (
        "*step*: 0.6x, 2x, 0.6x; `share` of G in time during the 2x, and when the last request "
        "was refused after it. *pause*: the whole process stops for 400 ms at 0.3x. *idle*: 50 "
        "idle connections, probes, 2 requests a second. *probes*: `/livez` ten times a second on "
        "new and on kept connections during 5x (threads: 3x).\n"
    )
    yield from _table(
        ("drill", "workload", "loop", "connections", "protection", "figures", "goals"),
        [(*drill, figures, said) for drill, figures, said in table.drills(results)],
    )
    yield ""


def _bases(results: Results) -> Iterator[str]:
    order = list(WORKLOADS)
    bases = sorted(
        results.bases.values(),
        key=lambda base: (order.index(base.workload), base.loop, base.connection, base.server),
    )
    yield from _table(
        (
            "workload",
            "server",
            "loop",
            "connections",
            "capacity/s",
            "CPU",
            "s",
            "r",
            "unloaded",
            "foreign CPU",
        ),
        [
            (
                base.workload,
                base.server,
                base.loop,
                base.connection,
                f"{base.capacity:.0f}",
                f"{base.cpu_share:.2f}",
                f"{base.service * 1e6:.0f} us",
                f"{base.refusal * 1e6:.0f} us",
                human(base.unloaded),
                percent(base.foreign_cpu),
            )
            for base in bases
        ],
    )


def _protections() -> Iterator[str]:
    named = ", ".join(f"`{item.name}`: {item.title}" for item in PROTECTIONS.values())
    yield f"Protections: {named}."


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        yield "Nothing."
        return
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"

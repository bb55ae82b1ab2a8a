"""`python -m examples.demo`, or `make demo`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.pinning import pinned
from examples.demo.contest import IN_TIME, OVERLOAD, PATIENCE, contest
from examples.demo.handlers import HANDLERS, SHOWN
from examples.demo.picture import draw
from examples.demo.report import Reporter

ROOT = Path(__file__).resolve().parents[2]


def main(argv: list[str] | None = None) -> int:
    """Overload each handler, and show the two sides."""
    options = _parser().parse_args(argv)
    reporter = Reporter()
    print(
        f"Overload of {OVERLOAD} times the capacity of one worker. Clients give up after "
        f"{PATIENCE:g} s; an answer within {IN_TIME * 1000:.0f} ms is in time.\n"
    )
    with pinned() as cpu:
        for name in options.handler or SHOWN:
            handler = HANDLERS[name]
            print(f"{name}: {handler.title}")
            result = contest(
                handler,
                protect=options.protect,
                seconds=options.seconds,
                cpu=cpu,
                announce=reporter.announce,
                progress=reporter.progress,
            )
            reporter.table(result)
            picture = options.directory / f"demo-{name}.png"
            draw(result, picture)
            print(f"  Latency over time: {picture}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    add = parser.add_argument
    add("--handler", action="append", choices=HANDLERS, help="which to overload; may be repeated")
    add("--protect", default="default", help="default, aimd, adaptive, limit:N or none (default)")
    add("--seconds", type=float, default=7.0, help="how long to overload (7)")
    add("--directory", type=Path, default=ROOT, help="where to put the pictures (the checkout)")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nstopped")

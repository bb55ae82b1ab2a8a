"""`python -m benchmarks.load URL`: one run from the command line."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from pathlib import Path

from benchmarks.load import (
    Load,
    Phase,
    Progress,
    Record,
    Summary,
    Target,
    closed_loop,
    open_loop,
    run,
    summarize,
)
from benchmarks.load.summary import human


def main(argv: list[str] | None = None) -> int:
    """Run one load and print its summary; 0, or 2 for options that make no sense."""
    options = _parser().parse_args(argv)
    try:
        target = Target.parse(options.url)
        if options.connections:
            seconds = options.seconds or 5.0
            measured = closed_loop(target, connections=options.connections, seconds=seconds)
            capacity = run(measured, uvloop=options.uvloop)
            print(f"capacity    {capacity.rate:.1f}/s with {options.connections} connections")
            print(f"200         p50 {human(capacity.p50)}, p99 {human(capacity.p99)}")
            print(f"others      {capacity.others}")
            return 0
        load = Load(
            phases=tuple(options.phase) or (Phase(options.rate, options.seconds or 10.0),),
            spacing=options.spacing,
            patience=options.patience,
            reuse=not options.new_connections,
            seed=options.seed,
        )
        probe = dataclasses.replace(target, path=options.probe) if options.probe else None
        summaries = run(_measure(target, load, probe, options), uvloop=options.uvloop)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for name, summary in summaries.items():
        print(f"--- {name}\n{summary}")
    if options.json:
        document = {name: dataclasses.asdict(summary) for name, summary in summaries.items()}
        Path(options.json).write_text(json.dumps(document, indent=1))
    return 0


async def _measure(
    target: Target, load: Load, probe: Target | None, options: argparse.Namespace
) -> dict[str, Summary]:
    runs = {"load": open_loop(target, load, _print_progress if options.progress else None)}
    if probe is not None:
        probing = Load.steady(options.probe_rate, load.seconds, reuse=not options.probe_new)
        runs["probe"] = open_loop(probe, probing)
    results: list[list[Record]] = await asyncio.gather(*runs.values())
    return {
        name: summarize(records, bound=options.bound, seconds=load.seconds)
        for name, records in zip(runs, results, strict=True)
    }


def _print_progress(now: Progress) -> None:
    print(
        f"{now.elapsed:4.0f} s  sent {now.sent}  200 {now.ok}  503 {now.refused}  "
        f"unanswered {now.unanswered}  waiting {now.waiting}",
        file=sys.stderr,
        flush=True,
    )


def _phase(text: str) -> Phase:
    rate, _, seconds = text.partition("x")
    return Phase(float(rate), float(seconds))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load",
        description="Open-loop load on a loopback address, with latency from the intended time.",
    )
    add = parser.add_argument
    add("url", help="http://127.0.0.1:PORT/PATH")
    add("--rate", type=float, default=100.0, help="requests a second (100)")
    add("--seconds", type=float, help="how long to send (10; closed loop: 5)")
    add(
        "--phase",
        type=_phase,
        action="append",
        default=[],
        metavar="RATExSECONDS",
        help="instead of --rate and --seconds; several follow one another",
    )
    add("--spacing", choices=("constant", "poisson"), default="constant")
    add("--seed", type=int, default=1, help="of the poisson gaps (1)")
    add("--patience", type=float, default=5.0, help="seconds until a client leaves (5)")
    add("--new-connections", action="store_true", help="open one for every request")
    add("--bound", type=float, default=0.5, help="seconds that count as in time (0.5)")
    add("--connections", type=int, help="closed loop instead: so many clients that wait")
    add("--probe", metavar="PATH", help="ask for this path beside the load")
    add("--probe-rate", type=float, default=5.0, help="probes a second (5)")
    add("--probe-new", action="store_true", help="open a connection for every probe")
    add("--uvloop", action=argparse.BooleanOptionalAction, help="default: if installed")
    add("--progress", action="store_true", help="a line each second on stderr")
    add("--json", metavar="FILE", help="write the summaries there")
    return parser


if __name__ == "__main__":
    sys.exit(main())

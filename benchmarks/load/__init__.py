"""An open-loop HTTP/1.1 load generator whose latencies hide nothing.

A closed-loop generator waits for an answer before it sends the next request, so a server that
stalls for a second is asked nothing during that second, and its latencies look fine: this is
"coordinated omission". Here each request has an *intended* time that no answer can move, and its
latency counts from there.

    from benchmarks.load import Load, Target, open_loop, run, summarize

    target = Target.parse("http://127.0.0.1:8000/")
    records = run(open_loop(target, Load.steady(rate=300, seconds=10)))
    print(summarize(records, bound=0.5))
"""

from __future__ import annotations

from benchmarks.load.arrivals import Phase, intended_times
from benchmarks.load.closed_loop import Capacity, closed_loop
from benchmarks.load.eventloop import run
from benchmarks.load.open_loop import Load, Progress, open_loop
from benchmarks.load.record import Record
from benchmarks.load.summary import Slot, Summary, summarize
from benchmarks.load.target import Target, TargetError

__all__ = [
    "Capacity",
    "Load",
    "Phase",
    "Progress",
    "Record",
    "Slot",
    "Summary",
    "Target",
    "TargetError",
    "closed_loop",
    "intended_times",
    "open_loop",
    "run",
    "summarize",
]

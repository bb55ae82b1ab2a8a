"""What we want to reach, and by how much we miss it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmarks.overload.cell import Result
from benchmarks.overload.drills import Drilled
from benchmarks.overload.protections import OURS, RUNNER
from benchmarks.overload.workloads import WORKLOADS

# Default of `backpressure.max_wait`, seconds.
MAX_WAIT = 0.1

GOODPUT = 0.98
REFUSED_BELOW_CAPACITY = 0.001
REFUSED_P99 = 0.25
STEP_SHARE = 0.9
LAST_REFUSAL = 2.0
PAUSE_REFUSED = 0.005
PROBE_P99 = 0.25
THREAD_PROBE_P99 = 0.05


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal and what was reached; `short` says by how much it was missed, empty if met."""

    name: str
    short: str

    @property
    def met(self) -> bool:
        """Whether it was reached."""
        return not self.short


def cell_goals(ours: Result, peers: Iterable[Result]) -> list[Goal]:
    """The goals of one cell of ours; `peers` are those measured at the same load."""
    if ours.load < 1:
        return [
            _at_most("refused at most 0.1 %", ours.refused, REFUSED_BELOW_CAPACITY, _percent),
            _at_most("everyone answered", ours.unanswered, 0.0, _percent),
        ]
    p99 = WORKLOADS[ours.workload].p99_factor * (MAX_WAIT + ours.unloaded)
    goals = [
        _at_least("98 % of G", share(ours.in_time, ours.best), GOODPUT),
        *_above_peers(ours, peers),
        _at_most("p99 of the 200s", ours.p99, p99, _milliseconds),
    ]
    if ours.refused:
        goals.append(_at_most("p99 of refusals", ours.refused_p99, REFUSED_P99, _milliseconds))
    goals.append(_at_most("everyone answered", ours.unanswered, 0.0, _percent))
    return goals


def drill_goals(drilled: Drilled) -> list[Goal]:
    """The goals of one drill of ours."""
    measures = drilled.measures
    if drilled.name == "step":
        return [
            _at_least("90 % of G after the step", measures["share"], STEP_SHARE),
            _at_most("last refusal within 2 s", measures["last_refusal"], LAST_REFUSAL, _seconds),
        ]
    if drilled.name == "pause":
        return [_at_most("refused under 0.5 %", measures["refused"], PAUSE_REFUSED, _percent)]
    if drilled.name == "idle":
        return [_at_most("nothing refused", measures["not_200"], 0.0, _count)]
    bound = THREAD_PROBE_P99 if drilled.workload == "thread" else PROBE_P99
    return [
        _at_most("/livez on a new connection", measures["new_p99"], bound, _milliseconds),
        _at_most("/livez on a kept connection", measures["kept_p99"], bound, _milliseconds),
        _at_most("every probe 200", measures["probes_not_200"], 0.0, _count),
        _at_most("everyone answered", measures["unanswered"], 0.0, _percent),
    ]


def share(part: float, whole: float) -> float:
    """`part / whole`, or NaN if there is no whole."""
    return part / whole if whole else math.nan


def _above_peers(ours: Result, peers: Iterable[Result]) -> list[Goal]:
    others = [peer for peer in peers if peer.protection not in (OURS, RUNNER)]
    if not others:
        return []  # nobody to be compared with is no goal met
    best = max(others, key=lambda peer: share(peer.in_time, peer.capacity))
    points = (share(best.in_time, best.capacity) - share(ours.in_time, ours.capacity)) * 100
    if points <= 0:
        return [Goal("above every peer", "")]
    # Who leaves the rest without an answer pays for none: say so, it is no like for like.
    silent = f" (which leaves {best.unanswered:.0%} unanswered)" if best.unanswered > 0.005 else ""
    return [Goal("above every peer", f"{points:.1f} points below {best.protection}{silent}")]


def _at_least(name: str, value: float, bound: float) -> Goal:
    # Written so that NaN is short of every goal.
    if value >= bound:
        return Goal(name, "")
    return Goal(name, f"{value:.1%} of {bound:.0%}" if not math.isnan(value) else "not measured")


def _at_most(name: str, value: float, bound: float, show: Callable[[float], str]) -> Goal:
    if value <= bound:
        return Goal(name, "")
    return Goal(name, "not measured" if math.isnan(value) else f"{show(value)} for {show(bound)}")


def _percent(value: float) -> str:
    return f"{value * 100:.2g} %"


def _milliseconds(value: float) -> str:
    return f"{value * 1000:.0f} ms"


def _seconds(value: float) -> str:
    return f"{value:.1f} s"


def _count(value: float) -> str:
    return f"{value:.0f}"

"""Work of a known size.

A fixed number of steps, not a loop until a time has passed: under contention a timed loop does
less work the slower the machine is, which is the reverse of what a real handler does.
"""

from __future__ import annotations

import os
import time

VARIABLE = "WORK_STEPS_PER_MS"


def spend(steps: int) -> int:
    """Use the CPU for so many steps, without letting go of the interpreter's lock."""
    value = 1
    for _ in range(steps):
        value = (value * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return value


def calibrate(rounds: int = 7, steps: int = 100_000) -> int:
    """How many steps take a millisecond of CPU here: the best of several rounds.

    Hand the result to every server that is to be compared, in the environment variable that
    `steps_per_ms` reads, so that all of them do the same work.
    """
    best = float("inf")
    for _ in range(rounds):
        begin = time.thread_time()
        spend(steps)
        best = min(best, time.thread_time() - begin)
    return max(1, round(steps / (best * 1000)))


def steps_per_ms() -> int:
    """The calibration from the environment, else one of our own."""
    given = os.environ.get(VARIABLE)
    return int(given) if given else calibrate()


STEPS_PER_MS = steps_per_ms()


def cpu(milliseconds: float) -> None:
    """Use about so much CPU, in one piece."""
    spend(int(milliseconds * STEPS_PER_MS))

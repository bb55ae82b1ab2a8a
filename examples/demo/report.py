"""What the person who runs the demo gets to read."""

from __future__ import annotations

import os
import sys

from benchmarks.load import Progress, Summary
from benchmarks.load.summary import human
from examples.demo.contest import IN_TIME, Contest


class Reporter:
    """Print what happens while it happens, one line a second."""

    def __init__(self) -> None:
        self._last = Progress(0, 0, 0, 0, 0, 0)
        self._colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def announce(self, what: str) -> None:
        """A new step begins."""
        self._last = Progress(0, 0, 0, 0, 0, 0)
        print(f"  {self._bold(what)}", flush=True)

    def progress(self, now: Progress) -> None:
        """What this second has brought."""
        last, self._last = self._last, now
        print(
            f"    {now.elapsed:3.0f} s   asked {now.sent - last.sent:5}   "
            f"200 {now.ok - last.ok:5}   503 {now.refused - last.refused:5}   "
            f"gave up {now.unanswered - last.unanswered:5}   waiting {now.waiting:5}",
            flush=True,
        )

    def table(self, result: Contest) -> None:
        """Both sides, side by side."""
        names = [side.name for side in result.sides]
        summaries = [side.summary for side in result.sides]
        rows = [
            (f"200 within {IN_TIME * 1000:.0f} ms", [_in_time(s, result) for s in summaries]),
            ("200 in all", [str(s.answered) for s in summaries]),
            ("p50 / p99 of the 200s", [f"{human(s.p50)} / {human(s.p99)}" for s in summaries]),
            ("refused with 503", [_refused(s) for s in summaries]),
            ("no answer at all", [str(s.unanswered) for s in summaries]),
        ]
        print()
        print(self._bold(f"  {'':24}{names[0]:>24}{names[1]:>24}"))
        for title, (bare, guarded) in rows:
            print(f"  {title:24}{bare:>24}{guarded:>24}")
        print()
        if any(summary.disturbed for summary in summaries):
            print("  The machine was too busy for the load generator: repeat this run.")

    def _bold(self, text: str) -> str:
        return f"\033[1m{text}\033[0m" if self._colour else text


def _in_time(summary: Summary, result: Contest) -> str:
    share = summary.in_time / (result.capacity * summary.seconds)
    return f"{summary.in_time} ({share:.0%} of capacity)"


def _refused(summary: Summary) -> str:
    return f"{summary.refused} (p99 {human(summary.refused_p99)})" if summary.refused else "0"

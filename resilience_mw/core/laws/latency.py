"""A limit from latency: sees a queue behind us, where the event loop idles.

With X = completions a second, n = requests in flight, p = lower quartile of the latencies, less our
own queue for the CPU (s u / (1 - u) under processor sharing):

    target = baseline + max(baseline, max_wait / 2)
    p > target, and n > 1.2 X mean (it grows) or we refuse:    limit = X target
    p > target otherwise:                                      no more than there are, and a few
    most of them ran into a deadline:                          limit x 0.7
    else, while it binds, once a latency:                      limit x 1.1 + 1

X target is Little's law. It says at once how many are right; a ratio of latencies applied to the
limit would be applied again and again to requests that were let in before the first cut.

The baseline falls fast and rises slowly, and only while lightly loaded, so that an overload does
not become the normal state. A deep cut is a *trial*: if latency was a queue, throughput stays as it
was; if throughput fell with the limit and latency did not, the work takes longer now, by itself.
Then the cut is undone and the baseline set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from .base import Window

SAMPLES = 10
"""Latencies that make a quantile."""
DEEP = 0.7
"""A cut below this share of what was is a trial."""
SPAN = 0.5
"""Seconds for which a trial is watched, and for which threads must look suspect."""
PAUSE = 4.0
"""Seconds without cuts after a trial that was wrong; doubled each time, up to a minute."""
RISE = 60.0
"""Seconds in which the baseline rises most of the way to a latency that stays higher."""


@dataclass(slots=True)
class Trial:
    """A cut that has to show that it was right."""

    starts: float
    """When requests that were admitted before it are gone."""
    limit: float
    """What to go back to."""
    rate: float
    """Completions a second below which it may have been wrong."""
    latency: float
    """Mean latency above which it was, then."""
    done: int = 0
    length: float = 0.0


@dataclass(slots=True)
class Rates:
    """The last second."""

    done: float
    """Completions a second."""
    busy: float
    """Utilization, 0 to 1."""
    peak: int
    """Most requests that ran at once."""
    refusing: bool
    """Whether any request was refused."""
    steady: bool
    """Whether completions came at an even rate, so that it says what can be borne."""


class LatencyLimit:
    """Moves ``limit`` so that latency stays near its unloaded baseline.

    Args:
        max_limit: requests.
        max_wait: seconds of waiting that clients do not mind.
    """

    def __init__(self, max_limit: int, max_wait: float) -> None:
        self.limit = float(max_limit)
        self.baseline: float | None = None
        """Latency without a queue in seconds, as far as it is known."""
        self._max_limit = max_limit
        self._slack = max_wait / 2
        self._samples: list[float] = []
        self._recent: deque[float] = deque(maxlen=3)
        self._trial: Trial | None = None
        self._suspect = 0.0  # seconds
        self._origin = 0.0  # the limit before the first cut of this suspicion
        self._grows = 0.0  # not before then
        self._immune = 0.0  # until then
        self._pause = PAUSE

    def update(self, window: Window, rates: Rates, bound: bool, *, queueing: bool) -> bool:
        """Take one window; returns True if a trial has just shown that there was no overload.

        Args:
            window: the window.
            rates: the last second.
            bound: whether somebody waits or is refused, or as many run as may.
            queueing: whether a request that finds no slot can wait. If not, a cut refuses at
                once, so it takes longer to make up our mind.
        """
        self._cap_pool(window)
        if window.overdue > len(window.latencies) / 2:
            # Whatever it is that they wait for, it is not worth waiting for: no trial.
            self._trial = None
            self._samples.clear()
            self.limit = max(2.0, min(self.limit, float(window.peak)) * DEEP)
            return False
        self._samples.extend(window.latencies)
        if self._trial is not None:
            wrong = self._watch(self._trial, window, bound)
            if wrong is not False:
                return bool(wrong)
        if len(self._samples) < SAMPLES:
            return False
        samples = sorted(self._samples)
        self._samples.clear()
        p = samples[len(samples) // 4]
        mean = sum(samples) / len(samples)
        base = self._learn(p, window, light=not bound and not rates.refusing and rates.busy < 0.9)
        target = base + max(base, self._slack)
        u = min(rates.busy, 0.8)
        own = rates.busy / rates.done * u / (1.0 - u) if rates.done else 0.0
        if p - own <= target:
            self._suspect = self._origin = 0.0
            self._grow(window, bound, mean)
        elif window.now >= self._immune:
            self._suspect += window.length
            if queueing or self._suspect >= SPAN:
                self._shrink(window, rates, mean, rates.done * target)
        return False

    def _cap_pool(self, window: Window) -> None:
        # Here the queue can be counted: no need to wait until latency shows it.
        running = window.inflight - window.pool_waiting
        if window.pool_waiting > max(4, running / 4):
            self.limit = min(self.limit, 1.25 * running + 1)

    def _learn(self, p: float, window: Window, *, light: bool) -> float:
        base = self.baseline
        self._recent.append(p)
        # Three in a row: where hits and misses mix, a quartile is a lucky one now and then.
        least = max(self._recent)
        if base is None:
            base = p
        elif least < base:
            if window.now >= self._immune:
                base += 0.3 * (least - base)
        elif light and base < p < base + max(base, self._slack):
            base += min(1.0, window.length / RISE) * (p - base)
        self.baseline = base
        return base

    def _grow(self, window: Window, bound: bool, mean: float) -> None:
        # Once a latency: only then shows what the last step did.
        if window.now >= self._grows:
            grown = self.limit * 1.1 + 1 if bound else self.limit * 1.02
            self.limit = min(self._max_limit, grown)
            self._grows = window.now + mean

    def _shrink(self, window: Window, rates: Rates, mean: float, right: float) -> None:
        most = min(self.limit, float(window.peak))
        if rates.steady and window.inflight > 1.2 * rates.done * mean:
            limit = max(2.0, min(most, right))
        elif window.refused:
            limit = max(2.0, min(most, max(0.5 * most, right)))
        else:
            self.limit = min(self.limit, rates.peak * 1.1 + 2)
            return
        self.limit = limit
        origin = self._origin = max(self._origin, most)
        if limit < DEEP * origin and rates.done:
            half = (1.0 + limit / most) / 2
            starts = window.now + min(most / rates.done, 2.0 * mean) + window.length
            self._trial = Trial(starts, origin, half * rates.done, half * mean)
            self._origin = 0.0

    def _watch(self, trial: Trial, window: Window, bound: bool) -> bool | None:
        """Go on with a trial; returns ``None`` while it lasts, then whether it was wrong."""
        if window.now - window.length < trial.starts:
            self._samples.clear()
            return None
        if not bound:
            self._trial = None  # fewer ask now: nothing can be learned
            return False
        trial.done += len(window.latencies)
        trial.length += window.length
        if trial.length < SPAN:
            return None
        self._trial = None
        mean = average(self._samples, trial.latency)
        if trial.done >= trial.rate * trial.length or mean < trial.latency:
            self._pause = PAUSE
            return False
        self.baseline = mean
        self.limit = trial.limit
        self._immune = window.now + self._pause
        self._pause = min(60.0, 2.0 * self._pause)
        return True


def average(samples: Sequence[float], default: float) -> float:
    """Return the mean of samples, ``default`` of none."""
    return sum(samples) / len(samples) if samples else default

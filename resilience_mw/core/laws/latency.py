"""A limit from latency: sees a queue behind us, where the event loop idles.

A queue delays everybody. So latency is suspect when its mean *and* its lower quartile, less our own
queue for the CPU (s u / (1 - u) under processor sharing), are above their targets,

    target = baseline + max(baseline, max_wait / 2)

which a few slow requests cannot do to the quartile, nor a mix of hits and misses to the mean. With
X = completions a second and n = requests in flight, the limit becomes

    suspect, and n > 1.2 X mean (it grows) or we refuse:    X target of the mean (Little's law)
    suspect otherwise:                                      no more than there are, and a few
    most of them ran into a deadline:                       0.7 of it
    not suspect, while it binds, once a latency:            1.1 of it, and one

X target says at once how many are right; a ratio of latencies applied to the limit would be applied
again and again to requests that were let in before the first cut.

Baselines fall fast and rise slowly, and only while lightly loaded, so that an overload does not
become the normal state. A deep cut is a *trial*: if latency was a queue, throughput stays as it
was; if throughput fell with the limit and latency did not, the work takes longer now, by itself.
Then the baseline is set, and how fast requests may grow again is for `ramp` to say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from .base import Window

SAMPLES = 10
"""Latencies that make a quantile."""
GROWTH = 1.2
"""Requests in flight grow if they are so many times what Little's law makes of those that end."""
DEEP = 0.7
"""A cut below this share of what was is a trial."""
SPAN = 0.5
"""Seconds for which a trial is watched, and for which threads must look suspect."""
PAUSE = 4.0
"""Seconds without cuts after a trial that was wrong; doubled each time, up to a minute."""
LIGHT = 0.9
"""Utilization above which the loop's own queue may be what is seen."""
RISE = 60.0
"""Seconds in which the baseline rises most of the way to a latency that stays higher."""


@dataclass(slots=True)
class Trial:
    """A cut that has to show that it was right."""

    starts: float
    """When requests that were admitted before it are gone."""
    rate: float
    """Completions a second below which it may have been wrong."""
    latency: float
    """Mean latency above which it was, then."""
    done: int = 0
    length: float = 0.0


class Baseline:
    """Where a measure of latency stands while nothing queues.

    Args:
        slack: seconds by which it may be exceeded at least.
    """

    def __init__(self, slack: float) -> None:
        self.value: float | None = None
        """Seconds; ``None`` until something was measured."""
        self._slack = slack
        self._recent: deque[float] = deque(maxlen=3)

    @property
    def target(self) -> float:
        """Seconds above which it is suspect."""
        value = self.value or 0.0
        return value + max(value, self._slack)

    def learn(self, measured: float, length: float, *, light: bool, fall: bool) -> None:
        """Take what was measured in ``length`` seconds."""
        self._recent.append(measured)
        # Three in a row: a lucky window is no new baseline.
        least = max(self._recent)
        if self.value is None:
            self.value = measured
        elif least < self.value:
            if fall:
                self.value += 0.3 * (least - self.value)
        elif light and self.value < measured < self.target:
            self.value += min(1.0, length / RISE) * (measured - self.value)


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
        self._max_limit = max_limit
        self._mean = Baseline(max_wait / 2)
        self._quartile = Baseline(max_wait / 2)
        self._guessed = False  # the baseline, of those that ended first
        self._samples: list[float] = []
        self._trial: Trial | None = None
        self.excess = 0.0
        """Seconds by which the last latencies were above the baseline, without our own queue."""
        self._suspect = 0.0  # seconds
        self._origin = 0.0  # the limit before the first cut of this suspicion
        self._grows = 0.0  # not before then
        self._immune = 0.0  # until then
        self._pause = PAUSE

    @property
    def baseline(self) -> float | None:
        """Mean latency without a queue in seconds, as far as it is known."""
        return self._mean.value

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
        quartile = samples[len(samples) // 4]
        mean = sum(samples) / len(samples)
        light = not bound and not rates.refusing and rates.busy < LIGHT
        fall = window.now >= self._immune
        growing = window.inflight > GROWTH * rates.done * mean
        if self._mean.value is None and growing:
            # Started into an overload: the first to end are those that found no queue. Or into
            # normal traffic: then they are those that are quick by themselves.
            self._mean.value = self._quartile.value = samples[0]
            self._guessed = True
        elif self._guessed and not growing:
            self._mean.value, self._quartile.value = mean, quartile
            self._guessed = False
        self._mean.learn(mean, window.length, light=light, fall=fall)
        self._quartile.learn(quartile, window.length, light=light, fall=fall)
        u = min(rates.busy, 0.8)
        own = rates.busy / rates.done * u / (1.0 - u) if rates.done else 0.0
        self.excess = mean - own - (self._mean.value or 0.0)
        if mean - own <= self._mean.target or quartile - own <= self._quartile.target:
            self._suspect = self._origin = 0.0
            self._grow(window, bound, mean)
        elif window.now >= self._immune:
            self._suspect += window.length
            if queueing or self._suspect >= SPAN:
                self._shrink(window, rates, mean, growing=growing)
        return False

    def _cap_pool(self, window: Window) -> None:
        # Here the queue can be counted: no need to wait until latency shows it.
        running = window.inflight - window.pool_waiting
        if window.pool_waiting > max(4, running / 4):
            self.limit = min(self.limit, 1.25 * running + 1)

    def _grow(self, window: Window, bound: bool, mean: float) -> None:
        # Once a latency: only then shows what the last step did.
        if window.now >= self._grows:
            grown = self.limit * 1.1 + 1 if bound else self.limit * 1.02
            self.limit = min(self._max_limit, grown)
            self._grows = window.now + mean

    def _shrink(self, window: Window, rates: Rates, mean: float, *, growing: bool) -> None:
        right = rates.done * self._mean.target
        most = min(self.limit, float(window.peak))
        if rates.steady and growing:
            limit = max(2.0, min(most, right))
        elif window.refused:
            limit = max(2.0, min(most, max(0.5 * most, right)))
        else:
            self.limit = min(self.limit, rates.peak * 1.1 + 2)
            return
        self.limit = limit
        self._guessed = False
        origin = self._origin = max(self._origin, most)
        if limit < DEEP * origin and rates.done:
            half = (1.0 + limit / most) / 2
            starts = window.now + min(most / rates.done, 2.0 * mean) + window.length
            self._trial = Trial(starts, half * rates.done, half * mean)
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
        self._mean.value = self._quartile.value = mean
        self.limit = float(self._max_limit)
        self._immune = window.now + self._pause
        self._pause = min(60.0, 2.0 * self._pause)
        return True


def average(samples: Sequence[float], default: float) -> float:
    """Return the mean of samples, ``default`` of none."""
    return sum(samples) / len(samples) if samples else default

"""Two limits, by loop turns and by latency, and one wait: how old a request may be."""

from __future__ import annotations

import math
from collections import deque

from .base import Window

TURN = 0.007
MEMORY = 1.0
CALM = 3.0
STANDING = 0.5
BACKLOG = 10


class Adaptive:
    name = "adaptive"
    observes = True

    def __init__(
        self,
        *,
        min_limit: int = 1,
        max_limit: int = 1000,
        elu_max: float = 0.95,
        window: float = 0.1,
        max_wait: float = 0.1,
        queue_timeout: float = 5.0,
    ) -> None:
        self.min_limit = min_limit
        self.max_limit = max_limit
        self.elu_max = elu_max
        self.window = window
        self.max_wait = max_wait
        self.queue_timeout = queue_timeout
        self.limit = max_limit
        self.saturated = False
        self.alert = True
        self.over = False
        self.turns = float(max_limit)  # limit by turns
        self.down = float(max_limit)  # limit by latency
        self.baseline: float | None = None
        self._past: deque[tuple[float, float, int, int, int]] = deque()
        self._length = self._busy = 0.0
        self._done = self._refused = self._arrivals = 0
        self._threads = False
        self._hot = False
        self._least: float | None = None
        self._stood = 0.0
        self._keep = 0.5
        self._credit = 0.0
        self._since = self._now = -math.inf
        self._samples: list[float] = []
        self._p = 0.0
        self._cut_until = -math.inf

    def update(self, w: Window) -> int:
        self._remember(w)
        self._now = w.now
        u = self._busy / self._length
        self._threads = w.turns == 0
        self._hot = not self._threads and u >= self.elu_max - (0.05 if self._hot else 0.0)
        self._stand(w)
        bound = w.queued > 0 or w.refused > 0 or w.peak >= self.limit
        if not self._threads:
            self._by_turns(w, bound)
        self._by_latency(w, bound, u)
        self.limit = max(self.min_limit, min(self.max_limit, int(min(self.turns, self.down))))
        self.alert = self._hot or self._threads or self.over
        self.saturated = self.over
        return self.limit

    def refuses(self, waited: float, backlog: int) -> str | None:
        if self._least is None or waited < self._least:
            self._least = waited
        if self._threads:
            if not self.over:
                return None
            self._credit = min(1.0, self._credit) + self._keep
            if waited > self.max_wait or self._credit < 1.0:
                return "waited"
            self._credit -= 1.0
            return None
        if not self._hot:
            return None
        if waited > (self.max_wait if self.over else CALM * self.max_wait):
            if not self.over:
                self.over = True
                self._since = self._now
            return "waited"
        if self.over and backlog > BACKLOG:
            return "saturated"
        return None

    def patience(self, now: float) -> float:
        return min(self.queue_timeout, self.max_wait * (0.5 if self.over else CALM))

    def _remember(self, w: Window) -> None:
        busy = w.utilization * w.length
        self._past.append((w.length, busy, len(w.latencies), w.refused, w.arrivals))
        while sum(past[0] for past in self._past) - self._past[0][0] >= MEMORY - 1e-9:
            self._past.popleft()
        self._length, self._busy, self._done, self._refused, self._arrivals = map(
            sum, zip(*self._past, strict=True)
        )

    def _stand(self, w: Window) -> None:
        if self._threads:
            if self._least is not None:
                self._stood = self._stood + w.length if self._least > self.max_wait else 0.0
                error = 0.5 - self._least / self.max_wait
                self._keep = min(1.0, max(0.01, self._keep * (1 + 0.3 * max(-1.0, error))))
            if self._stood >= STANDING and not self.over:
                self.over = True
                self._since = w.now
        elif w.refused and not self.over:
            self.over = True
            self._since = w.now
        if self.over:
            few = self._refused <= 0.05 * self._arrivals and w.now - self._since >= MEMORY
            cpu = not self._threads and not self._hot and self.turns < self.down
            if few or cpu:
                self.over = False
        self._least = None

    def _by_turns(self, w: Window, bound: bool) -> None:
        turn = w.utilization * w.length / w.turns
        if w.utilization >= self.elu_max and turn > TURN:
            top = min(self.turns, float(w.peak))
            needed = 0.0
            if self.baseline is not None and turn < 3 * TURN:
                needed = 1.5 * self.baseline * self._done / self._length
            self.turns = max(2.0, top * max(0.5, TURN / turn), min(top, needed))
        elif bound:
            self.turns = min(self.max_limit, self.turns * 1.25 + 1)
        elif w.utilization < self.elu_max:
            self.turns = min(self.max_limit, self.turns * 1.02)

    def _by_latency(self, w: Window, bound: bool, u: float) -> None:
        self._samples.extend(w.latencies)
        if len(self._samples) < 10:
            return
        samples = sorted(self._samples)
        self._samples.clear()
        p = samples[len(samples) // 4]
        mean = sum(samples) / len(samples)
        rate = self._done / self._length
        work = self._busy / max(1, self._done)
        own = work * min(u, 0.8) / (1 - min(u, 0.8))
        base = self.baseline
        if base is None or p < base:
            self.baseline = base = p
        target = base + max(base, self.max_wait / 2)
        if p - own > target:
            growing = w.inflight > 1.2 * rate * mean
            if w.refused or growing:
                self.down = max(2.0, min(self.down, w.peak) * 0.5, rate * target)
            else:
                self.down = min(self.down, w.peak * 1.1 + 2)
        else:
            if not bound and not self._hot and p > base:
                self.baseline = min(p, base * 1.02)
            if bound:
                self.down = min(self.max_limit, self.down * 1.1 + 1)
            else:
                self.down = min(self.max_limit, self.down * 1.02)

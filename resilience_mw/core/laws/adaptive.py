"""Three limits and one wait: our own law.

Where requests queue decides what can be seen of an overload, so three signals watch three places:

1. *Before us* (sockets, accept queue, threads): how long a request has waited when it reaches us.
   The only sign of handlers that compute without ``await``, and of WSGI threads that are all taken.
2. *In the event loop*: the mean length of a turn = busy time / turns. What is ready runs once a
   turn, so the length of a turn is the queue for the CPU, in seconds.
3. *Behind us* (database pool, thread pool, another service): latency, see `latency`.

The last two move a limit once a window, and how fast requests in flight may grow is a third, see
`ramp`; the one in force is the smallest. With u = utilization,
n = most requests at once, X = completions a second:

    u >= elu_max and turn > 7 ms, twice in a row:  limit = n x max(1/2, 7 ms / turn),
        but at least 1.5 X baseline (Little's law: so many are in service without any queue)
    else, while it binds:                          limit x 1.25 + 1

It may cut early, because whoever finds no slot waits: for a handler that computes, our queue is as
good as the loop's.

The first signal refuses single requests, while the loop has had no time left for a second or for
three windows in a row, as CoDel and folly do: calm, a request may be three times ``max_wait`` old,
so that bursts and pauses pass; once it has come to that we are *saturated*, and ``max_wait`` holds
until the loop has time left. At 80 % load, 300 ms of queue are one request in a million; at 200 %
they take 0.3 s. A wait that rises steeply is believed sooner, see `rise`, and so is an accept queue
that deepens, see `deepening`.

Threads have no loop: they are saturated when every request has waited too long for half a second,
or the wait rises steeply. An even share is let in, moved towards half of ``max_wait``; eight that
all clear the queue in the same moment would also start, and end, in the same moment.

What clients see is a reason: ``waited`` (too old), ``saturated`` (no slot, or a deep accept queue,
while saturated), ``queue_timeout`` and ``queue_full`` (calm, but no slot in time).

Sources: CoDel (Nichols and Jacobson, 2012) and folly's ``Codel``; limit from rate and unloaded
delay: TCP Vegas, BBR; an even share moved towards a delay: PIE (RFC 8033).
"""

from __future__ import annotations

from collections import deque

from .base import Window
from .deepening import Deepening
from .latency import LatencyLimit, Rates
from .ramp import Ramp
from .rise import Rise

TURN = 0.007
"""Seconds: a turn worth cutting for. A shorter queue for the CPU is not what clients notice."""
MEMORY = 1.0
"""Seconds from which utilization and rates are taken: longer than a burst or a pause that a worker
at 80 % shrugs off."""
CALM = 3.0
"""A calm worker lets requests wait this many times ``max_wait``."""
BURST = 16.0
"""... and for at least the work of so many: at 80 % load one in a thousand waits longer (M/D/1)."""
KEPT = 2.0
"""No request is refused for having waited less than the work of so many: it could not be helped."""
STANDING = 0.5
"""Seconds for which every request must have waited too long before threads count as overloaded,
unless it rises steeply."""
BACKLOG = 10
"""Connections waiting to be accepted from which everybody is refused, while overloaded; fewer
where turns are so long that accepting one in each takes them more than ``max_wait``."""
FEW = 0.05
"""Share of requests refused below which an overload that is not of the loop is over."""
IDLE = 0.3
"""Utilization below which a queue is somewhere behind us."""
ROW = 3
"""Windows without idle time, one after the other, from which a queue is believed. A pause of the
process is one, up to a second long, and the next two serve most of what came meanwhile."""
FLOOR = 0.8
"""Share of what threads have lately served that they are always let try: the queue of the first
moment says for long that they are overloaded, while they run out of work already."""
HALF = 2.0
"""Seconds in which half of that is forgotten."""
HYSTERESIS = 0.05
"""A loop that had no time left has some again when its utilization falls this much lower."""


class Adaptive:
    """The default law. The module says what it does and why.

    Args:
        min_limit, max_limit: requests.
        elu_max: utilization from which the event loop has no time left, 0 to 1.
        window: seconds between two updates.
        max_wait: seconds a request may have waited while overloaded.
        queue_timeout: most seconds a request may wait in the gate.
    """

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
        self.alert = True
        self.saturated = False
        self.demand: float | None = 1.0
        self.turns = float(max_limit)
        """The limit by the length of turns."""
        self.latency = LatencyLimit(max_limit, max_wait)
        """The limit by latency."""
        self.ramp = Ramp(max_limit)
        """The limit of what is not yet known to work."""
        self._longest = max_wait
        self._calm = CALM * max_wait
        self._work = 0.0  # seconds of CPU a request, learned while calm
        self._past: deque[Window] = deque()
        self._turned = self._threads = False
        self._busy = 0.0
        self._hot = False  # the loop has had no time left for a second
        self._row = 0  # windows without time left, one after the other
        self._long = False  # the last window's turns were too long
        self._least: float | None = None  # wait seen in this window
        self._since = self._now = 0.0
        self._stood = 0.0  # seconds for which every request had waited too long
        self._rise = Rise()
        self._accepts = Deepening()
        self._proven = False  # a queue has grown, or is long, since the loop last had time left
        self._most_outside = float(BACKLOG)  # connections
        self._keep = 1.0  # share of requests that threads take while saturated
        self._credit = 0.0
        self._able = 0.0  # requests a second that threads have served lately

    @property
    def baseline(self) -> float | None:
        """Latency without a queue in seconds, as far as it is known."""
        return self.latency.baseline

    # -- for each request ---------------------------------------------------------------------

    def refuses(self, waited: float, backlog: int) -> str | None:
        """Return why a request that has waited ``waited`` seconds is refused, or ``None``."""
        if self._least is None or waited < self._least:
            self._least = waited
        if self._threads:
            return "waited" if self.saturated and self._skips(waited) else None
        # A second is too long to wait for proof where a queue of three waits stands already.
        if not (self._hot or self._row >= ROW or self._proven):
            return None
        sure = self.saturated and (self._hot or self._proven)
        if waited > (self._longest if sure else self._calm):
            self._proven = True
            self._overload()
            return "waited"
        return "saturated" if sure and backlog > self._most_outside else None

    def patience(self, now: float) -> float:
        """Return for how many seconds a request may wait in the gate's queue from now on."""
        # Behind us there is a queue already when latency binds and the loop idles.
        behind = self.latency.limit < self.turns and self._busy < IDLE
        calm = not self.saturated and not behind
        return min(self.queue_timeout, self._calm if calm else self._longest)

    def _skips(self, waited: float) -> bool:
        self._credit = min(1.0, self._credit) + self._keep
        if waited > self._longest or self._credit < 1.0:
            return True
        self._credit -= 1.0
        return False

    # -- for each window ----------------------------------------------------------------------

    def update(self, window: Window) -> int:
        """Take one window and return the new limit."""
        self._now = window.now
        self._turned |= window.turns > 0
        self._threads = not self._turned  # a window within one long turn has none, either
        rates, share = self._remember(window)
        enough = self.elu_max - (HYSTERESIS if self._hot else 0.0)
        self._busy = rates.busy
        full = window.utilization >= self.elu_max
        self._row = self._row + (1 if window.length < MEMORY else ROW) if full else 0
        self._accepts.update(window.backlog, window.arrivals, full=full)
        lasts = self._hot or self._row >= ROW
        self._hot = not self._threads and rates.busy >= enough and lasts
        if self._threads:
            self._judge_threads(window, rates.done, few=share <= FEW)
        else:
            self._judge_loop(window, few=share <= FEW)
        bound = window.queued > 0 or window.refused > 0 or window.peak >= self.limit
        if not self._threads:
            self._limit_turns(window, bound, rates.done)
        if self.latency.update(window, rates, bound, queueing=not self._threads):
            self.saturated = False
        if not self.saturated and rates.done:
            self._work += 0.1 * (rates.busy / rates.done - self._work)
            self._longest = max(self.max_wait, KEPT * self._work)
            self._calm = max(CALM * self.max_wait, BURST * self._work)
        limit = min(self.turns, self.latency.limit)
        if not self._threads:
            self.ramp.update(window, self.baseline, self.latency.excess)
            limit = min(limit, self.ramp.limit)
        self.limit = max(self.min_limit, min(self.max_limit, int(limit)))
        self.alert = self._hot or self._row > 0 or self._threads
        return self.limit

    def _remember(self, window: Window) -> tuple[Rates, float]:
        """Return the rates of the last second and the share of requests refused in it."""
        past = self._past
        past.append(window)
        length = sum(w.length for w in past)
        while length - past[0].length >= MEMORY - 1e-9:
            length -= past.popleft().length
        done = [len(w.latencies) for w in past]
        half = len(done) // 2
        early, late = sum(done[:half]), sum(done[half:])
        busy = sum(w.utilization * w.length for w in past)
        arrivals = sum(w.arrivals for w in past)
        refused = sum(w.refused for w in past)
        # A worker that has just begun has no early half; it says nothing about a gap.
        steady = late * half <= 1.5 * early * (len(done) - half) or length < MEMORY - 1e-9
        self.demand = arrivals / max(1, arrivals - refused)
        peak = max(w.peak for w in past)
        rates = Rates((early + late) / length, busy / length, peak, refused > 0, steady)
        return rates, refused / max(1, arrivals)

    def _overload(self) -> None:
        if not self.saturated:
            self.saturated = True
            self._since = self._now
            self._keep = self._rise.share if self._rise.steep else 1.0

    def _judge_loop(self, window: Window, *, few: bool) -> None:
        self._rise.update(self._take_least(), window.length)
        ramping = self.ramp.limit < min(self.turns, self.latency.limit) and not self._hot
        grows = self._rise.above(self._longest) or self._accepts.steep
        self._proven = self._row > 0 and (self._proven or grows)
        if self._proven or (window.refused and not ramping):
            self._overload()
        elif not (self._hot or self._row) and (few or self.turns < self.latency.limit):
            self.saturated = False

    def _take_least(self) -> float | None:
        least, self._least = self._least, None
        return least

    def _judge_threads(self, window: Window, rate: float, *, few: bool) -> None:
        least = self._take_least()
        self._rise.update(least, window.length)
        self._able = max(rate, self._able * 0.5 ** (window.length / HALF))
        if least is not None:
            self._stood = self._stood + window.length if least > self._longest else 0.0
            error = max(-1.0, 0.5 - least / self._longest)
            floor = FLOOR * self._able * window.length / max(1, window.arrivals)
            self._keep = min(1.0, max(0.01, floor, self._keep * (1.0 + 0.4 * error)))
        if self._stood >= STANDING or self._rise.above(self._longest):
            self._overload()
        elif few and self._now - self._since >= 2 * MEMORY:
            self.saturated = False

    def _limit_turns(self, window: Window, bound: bool, rate: float) -> None:
        turn = window.utilization * window.length / max(1, window.turns)
        self._most_outside = min(BACKLOG, self.max_wait / turn) if turn else BACKLOG
        long = self._row > 0 and turn > TURN
        # Twice in a row: a single long turn (a collection of garbage) is nobody's queue.
        if long and self._long:
            most = min(self.turns, float(window.peak))
            needed = 1.5 * rate * (self.baseline or 0.0)
            self.turns = max(2.0, most * max(0.5, TURN / turn), min(most, needed))
        elif bound and not long:
            self.turns = min(self.max_limit, self.turns * 1.25 + 1)
        elif not self._row:
            self.turns = min(self.max_limit, self.turns * 1.02)
        self._long = long

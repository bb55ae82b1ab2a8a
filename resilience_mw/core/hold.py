"""A line that keeps still, so that a user sees one fate for a minute.

While ranks belong to users, moving the line changes somebody's luck. So it is looked for as in
`cutoff`, and then held:

- Long waits take a fixed part of the users back, short ones let them in again: whoever stands on
  the edge is the same each time.
- The line moves on only if that does not help for a while, or nobody has waited for long.
- After each minute's shuffle it lets in as much as before, by what the cohorts asked for, and a
  little more (less) where the part on the edge was out seldom (mostly).
- A storm or a jump of the load is met as in `cutoff`: then safety comes first.

It costs up to a tenth of the throughput, less where requests are many and small: what keeps still
cannot make use of every gap.
"""

from __future__ import annotations

from .cohorts import Cohorts
from .cutoff import Cutoff, Flow
from .ranking import Ranking

SETTLE = 5.0
"""Seconds for which the line is looked for."""
STEADY = 3.0
"""The last seconds of these, which tell what can be served."""
EDGE = 0.04
"""Share of capacity on the edge."""
STEP = 0.03
"""Share of capacity by which the line moves within a minute; at its end, half of it."""
SHUT, OPEN = 2.0, 0.5
"""Waits (in multiples of what is allowed) that shut the edge out and let it in again."""
STUCK = 2.0
"""Seconds of waits above ``SHUT`` after which the line moves down."""
IDLE, QUIET = 0.25, 8.0
"""The line moves up after so many seconds (the second) without a wait above the first."""
SELDOM, MOSTLY = 0.15, 0.6
"""Shares of a minute."""
STORM, STEEP, LEAST = 3.5, 0.35, 0.3
"""Beyond a wait of ``STORM``, capacity falls by ``STEEP`` for each multiple, down to ``LEAST``."""


class Hold(Cutoff):
    """A line for the ranks of users.

    Args:
        ranking: shuffles the users.
    """

    memory = 10.0

    def __init__(self, ranking: Ranking) -> None:
        super().__init__()
        self._ranking = ranking
        self._cohorts = Cohorts(ranking.places)
        self._settling = 0.0  # seconds that are left
        self._unit = 0.0  # capacity as a share of arrivals, when the line was fixed
        self._let_in = 1.0  # share of capacity
        self._shut = False
        self._shuffled = False  # whether a minute began in this window
        self._held = self._was_shut = 0.0  # seconds of this minute
        self._stuck = self._quiet = 0.0  # seconds

    def count(self, rank: float) -> None:
        """Take the rank of a request that arrives."""
        super().count(rank)
        if self._cohorts.shuffled(self._ranking.places):
            self._shuffled = True
        self._cohorts.count(rank)

    def update(self, flow: Flow) -> None:
        """End a window."""
        self._cohorts.age(flow.length)
        super().update(flow)
        self._shuffled = False

    def start(self) -> bool:
        """Let ranks decide from now on, if enough is known; returns whether they do."""
        if not self.active and super().start():
            self._settling = SETTLE
        return self.active

    def _line(self, delay: float) -> float:
        if self._settling > 0.0:
            return super()._line(delay)
        let_in = self._let_in - EDGE if self._shut else self._let_in
        if delay > STORM:
            let_in *= max(LEAST, 1.0 - STEEP * (delay - STORM))
        return self._cohorts.line(let_in * self._unit)

    def _move(self, flow: Flow, jumped: bool, delay: float, longest: float) -> None:
        super()._move(flow, jumped, delay, longest)
        if jumped:
            self._settling = SETTLE
        if self._settling > 0.0:
            self._settling -= flow.length
            if self._settling <= 0.0:
                self._let_in, self._shut = 1.0, False
                self._unit = self._completions(STEADY) / (self.arriving or 1.0)
                self._begin()
        else:
            self._adjust(flow.length, delay, longest)

    def _begin(self) -> None:
        """Begin to hold: at first, and anew in each minute."""
        self._cohorts.fix()
        self._held = self._was_shut = self._stuck = self._quiet = 0.0

    def _adjust(self, length: float, delay: float, longest: float) -> None:
        self._held += length
        self._was_shut += length * self._shut
        if self._shuffled:
            shut = self._was_shut / self._held
            self._let_in += STEP / 2 * ((shut < SELDOM) - (shut > MOSTLY))
            self._begin()
        self._shut = delay > OPEN if self._shut else delay > SHUT
        self._stuck = self._stuck + length if delay > SHUT else 0.0
        self._quiet = self._quiet + length if longest < IDLE else 0.0
        if self._stuck > STUCK:
            self._let_in -= STEP
            self._stuck = 0.0
        elif self._quiet > QUIET:
            self._let_in += STEP
            self._quiet = 0.0

"""Whether one stack does worse than another, as far as their counts can tell.

Each *look* asks four questions of the traffic of one window:

    errors      does a larger share of the new stack's requests fail?
    deadlines   do more of them miss their deadline?
    hangs       do more of them last ten times as long as the old stack's 95th percentile?
    latency     do more of them exceed that percentile?

all answered by Fisher's exact test, which holds for any number of samples, so that one failure in
fifty is not taken for a share of 2 %. For latencies it is then the control-quantile test (H. C.
Mathisen, 1943), which assumes nothing about their distribution. A new stack that is no worse may
trip it by chance, and looks are many: each question of each look gets an equal part of the error
allowed to a window (Bonferroni), so the sum stays below it.

Being worse is not enough, it must matter: the excess over what is tolerated has to be likely, too.

What is compared with: the old stack's requests in the same window and, unless they are many, those
that it had before, remembered with more weight on the latest. Where the remembered ones count, the
verdict falls only if the old stack does better *now*, too: what ails both (a database, the machine)
is no reason to go back. At a share of 100 % only the remembered ones are left; once they are too
old, a plain limit on failures.
"""

from __future__ import annotations

from .exact import p_above, p_more
from .guard import RolloutGuard, Verdict
from .outcomes import Outcomes, above, bucket_of, quantile, seconds_of

LOOKS = 40
"""Most looks in a window: one a slot, and one whenever the samples have grown by half."""
TESTS = 4
MATTERS = 0.01
"""Chance at which an excess over what is tolerated would be no excess."""
TAIL = 0.05
"""Share of the requests beyond the percentile that is compared."""
FAR, LONG = 10.0, 0.5
"""A request hangs after so many times the percentile, and so many seconds."""
PLENTY = 5
"""The old stack's requests in the window are many, if so many times those of the new one."""
FEW = 5
"""Requests of the old stack that show whether it is in trouble itself."""
ALIKE = 0.1
"""Chance above which a difference between the two in the window is none."""

Count = tuple[int, int]
"""How many requests are hit by something, and of how many."""


class Look:
    """One look at what both stacks did.

    Args:
        guard: what the new stack has to keep to.
        new: what it did in the window.
        old: what the old stack did in it.
        past: what that one did before; ``None`` = it is too long ago.
        seconds: how long the window was.
    """

    def __init__(
        self,
        guard: RolloutGuard,
        new: Outcomes,
        old: Outcomes,
        past: Outcomes | None,
        seconds: float,
    ) -> None:
        self.guard = guard
        self.new = new
        self.old = old
        self.past = past
        self.seconds = seconds
        self._alpha = alpha(guard)

    def verdict(self) -> Verdict | None:
        """Return why the new stack has to go; ``None`` = nothing speaks against it."""
        return self._errors() or self._latency()

    def _errors(self) -> Verdict | None:
        new, old = self.new, self.old
        total = int(new.ended)
        if total < self.guard.min_samples:
            return None
        against, base = self._reference(total, old.ended)
        known = int(base.ended)
        for reason, field in (("errors", "failed"), ("deadlines", "late")):
            mine, theirs = (int(getattr(new, field)), total), _part(getattr(base, field), known)
            if against != "limit":
                current = (int(getattr(old, field)), int(old.ended))
                found = self._more(reason, against, mine, theirs, current)
                if found is not None:
                    return found
                continue
            ceiling = self.guard.error_ceiling
            p = p_above(*mine, ceiling)
            if p <= self._alpha and not (known and p_more(*mine, *theirs) > MATTERS):
                share = mine[0] / total
                return Verdict(reason, against, share, ceiling, total, known, p, self.seconds)
        return None

    def _latency(self) -> Verdict | None:
        new, old = self.new, self.old
        total = int(new.timed)
        if total < self.guard.min_samples:
            return None
        against, base = self._reference(total, old.timed)
        if against == "limit":
            return None
        known, present = max(1, int(base.timed)), int(old.timed)
        usual = quantile(base.times, 1.0 - TAIL)
        seconds = seconds_of(usual)
        far = bucket_of(max(FAR * seconds, LONG))
        mine, theirs, current = (above(each.times, far) for each in (new, base, old))
        found = self._more(
            "hangs",
            against,
            (int(mine), total),
            _part(theirs, known),
            (int(current), present),
        )
        if found is not None:
            return found
        hits = int(above(new.times, usual))
        p = p_more(hits, total, *_part(above(base.times, usual), known))
        most = max(seconds * self.guard.max_latency_ratio, seconds + self.guard.latency_slack)
        if (
            p > self._alpha
            or p_above(int(above(new.times, bucket_of(most))), total, TAIL) > MATTERS
            or self._shared((hits, total), (int(above(old.times, usual)), present))
        ):
            return None
        measured = seconds_of(quantile(new.times, 1.0 - TAIL))
        return Verdict("latency", against, measured, seconds, total, known, p, self.seconds)

    def _more(
        self, reason: str, against: str, mine: Count, theirs: Count, current: Count
    ) -> Verdict | None:
        """Return a verdict if a larger share of the new stack's requests is hit, and it matters.

        Args:
            reason: what they are hit by.
            against: what the new stack is compared with.
            mine: how many of the new stack's requests are hit, of how many.
            theirs: of those that they are compared with.
            current: of the old stack's in this window.
        """
        (hits, total), (bad, known) = mine, theirs
        share = bad / known
        p = p_more(hits, total, bad, known)
        if (
            p > self._alpha
            or p_above(hits, total, share + self.guard.max_error_increase) > MATTERS
            or self._shared(mine, current)
        ):
            return None
        return Verdict(reason, against, hits / total, share, total, known, p, self.seconds)

    def _reference(self, wanted: float, samples: float) -> tuple[str, Outcomes]:
        """Return what ``wanted`` requests of the new stack are compared with.

        Args:
            wanted: how many there are.
            samples: how many there are of the old stack in the window.
        """
        least = self.guard.min_samples
        against = "old" if samples >= least else "past"
        if samples >= max(least, PLENTY * wanted):
            return against, self.old
        base = Outcomes()
        base.add(self.old)
        if self.past is not None:
            base.add(self.past)
        return (against, base) if base.ended >= least else ("limit", base)

    def _shared(self, mine: Count, current: Count) -> bool:
        """Whether the old stack's requests in this window fare about as badly."""
        (hits, total), (other_hits, other_total) = mine, current
        if other_total < FEW:
            return False
        if other_total < self.guard.min_samples:
            return 2.0 * other_hits * total >= hits * other_total
        return p_more(*mine, *current) > ALIKE


def alpha(guard: RolloutGuard) -> float:
    """Return the chance that one question of one look may be answered wrongly with."""
    return (1.0 - guard.confidence) / (LOOKS * TESTS)


def _part(hits: float, total: int) -> Count:
    """Return the count nearest to what has faded, which is no whole number."""
    return min(total, round(hits)), total

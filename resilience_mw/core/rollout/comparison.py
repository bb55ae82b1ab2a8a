"""Whether the new stack is worse than the old one, as far as traffic can tell.

Each *look* asks three questions of the traffic of one window:

    errors      does a larger share of the new stack's requests fail?
    deadlines   do more of them miss their deadline?
    latency     do more of them exceed the old stack's 95th percentile?

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

from collections.abc import Callable, Iterable

from .exact import p_above, p_more
from .guard import RolloutGuard, Verdict
from .outcomes import BATCH, Outcomes, above, bucket_of, quantile, seconds_of

__all__ = ["Comparison", "RolloutGuard", "Verdict"]

SLOTS = 20
"""Parts of a window; there is a look at the end of each."""
LOOKS = 40
"""Most looks in a window: one a slot, and one whenever the samples have grown by half."""
TESTS = 3
STRETCH = 10
"""Windows for which few requests of the new stack are collected."""
MATTERS = 0.01
"""Chance at which an excess over what is tolerated would be no excess."""
TAIL = 0.05
"""Share of the requests beyond the percentile that is compared."""
MEMORY = 5 * SLOTS
"""Slots over which the old stack's past is remembered."""
PLENTY = 5
"""The old stack's requests in the window are many, if so many times those of the new one."""
FEW = 5
"""Requests of the old stack that show whether it is in trouble itself."""
ALIKE = 0.1
"""Chance above which a difference between the two in the window is none."""


Running = Callable[[bool], Iterable[float]]


class Slot:
    """A part of a window."""

    __slots__ = ("ends", "new", "old")

    def __init__(self, ends: float) -> None:
        self.ends = ends
        self.new = Outcomes()
        self.old = Outcomes()


class Comparison:
    """Takes what happened to each request of a rule, and says when the new stack is worse.

    Not thread-safe: its driver holds a lock where there are threads.

    Args:
        guard: what the new stack has to keep to.
        now: monotonic seconds.
        running: tells when the requests began which the new stack (or the old one) has not answered
            yet. Without it, a request that never ends goes unnoticed.
    """

    def __init__(
        self, guard: RolloutGuard, now: float = 0.0, running: Running = lambda new: ()
    ) -> None:
        self.guard = guard
        self._width = guard.window / SLOTS
        self._alpha = (1.0 - guard.confidence) / (LOOKS * TESTS)
        self._past = Outcomes()
        self._past_ends = 0.0
        self._running = running
        self._forgotten = 0.0  # when the new stack was last forgotten
        self._slots: dict[int, Slot] = {}
        self._fresh = 0  # requests of the new stack since the last look
        self._enough = guard.min_samples
        self._due = False
        self._opened = self._edge = now
        self._open(now)

    @property
    def edge(self) -> float:
        """When `verdict` has something to look at again, even if nothing ends until then."""
        return self._edge

    def record(
        self, new: bool, failed: bool, seconds: float, now: float, late: bool = False
    ) -> bool:
        """Take a request that has ended; refusals are not for here.

        Args:
            new: whether the new stack had it.
            failed: whether that stack failed: an exception, or a status of 500 or above.
            seconds: since the stack got it.
            now: monotonic seconds.
            late: whether it missed its deadline.

        Returns:
            Whether `verdict` has something to look at.
        """
        if now >= self._edge:
            self._turn(now)
        outcomes = self._slot.new if new else self._slot.old
        fresh = outcomes.fresh
        fresh.append(seconds)
        if len(fresh) >= BATCH:
            outcomes.sort()
        if failed:
            outcomes.failed += 1
        if late:
            outcomes.late += 1
        if new:
            self._fresh += 1
            return self._due or self._fresh >= self._enough
        return self._due

    def verdict(self, now: float) -> Verdict | None:
        """Return why the new stack has to go, once; ``None`` = nothing speaks against it.

        Costs next to nothing until there is something new to look at.
        """
        if now >= self._edge:
            self._turn(now)
        if not self._due and self._fresh < self._enough:
            return None
        self._due, self._fresh = False, 0
        self._sort()
        new = self._total(True, now)
        if not new.times:
            return None
        old = self._total(False, now)
        self._enough = max(self.guard.min_samples, int(new.ended / 2))
        found = self._errors(new, old, now) or self._latency(new, old, now)
        if found is not None:
            self.restart()
        return found

    def restart(self) -> None:
        """Forget what the new stack did: its share was raised again, or it was replaced."""
        for slot in self._slots.values():
            slot.new = Outcomes()
        self._forgotten = self._edge
        self._fresh, self._enough = 0, self.guard.min_samples

    def _errors(self, new: Outcomes, old: Outcomes, now: float) -> Verdict | None:
        if new.ended < self.guard.min_samples:
            return None
        against, base = self._reference(new.ended, old, old.ended, now)
        for reason in ("errors", "deadlines"):
            field = "failed" if reason == "errors" else "late"
            hits, total = int(getattr(new, field)), int(new.ended)
            bad, known = round(getattr(base, field)), int(base.ended)
            if against == "limit":
                share = self.guard.error_ceiling
                p = p_above(hits, total, share)
                if known and p_more(hits, total, bad, known) > MATTERS:
                    continue
            else:
                share = bad / known
                p = p_more(hits, total, bad, known)
                if p_above(hits, total, share + self.guard.max_error_increase) > MATTERS:
                    continue
            if p <= self._alpha and not self._shared(hits, total, getattr(old, field), old.ended):
                return Verdict(
                    reason, against, hits / total, share, total, known, p, self._span(now)
                )
        return None

    def _latency(self, new: Outcomes, old: Outcomes, now: float) -> Verdict | None:
        timed = new.timed
        if timed < self.guard.min_samples:
            return None
        against, base = self._reference(timed, old, old.timed, now)
        if against == "limit":
            return None
        known, total = int(base.timed), int(timed)
        usual = quantile(base.times, 1.0 - TAIL)
        hits = int(above(new.times, usual))
        p = p_more(hits, total, round(above(base.times, usual)), known)
        if p > self._alpha:
            return None
        seconds = seconds_of(usual)
        most = max(seconds * self.guard.max_latency_ratio, seconds + self.guard.latency_slack)
        if p_above(int(above(new.times, bucket_of(most))), total, TAIL) > MATTERS:
            return None
        if self._shared(hits, total, above(old.times, usual), old.timed):
            return None
        measured = seconds_of(quantile(new.times, 1.0 - TAIL))
        return Verdict("latency", against, measured, seconds, total, known, p, self._span(now))

    def _reference(
        self, wanted: float, old: Outcomes, samples: float, now: float
    ) -> tuple[str, Outcomes]:
        """Return what ``wanted`` requests of the new stack are compared with."""
        least = self.guard.min_samples
        against = "old" if samples >= least else "past"
        if samples >= max(least, PLENTY * wanted):
            return against, old
        base = Outcomes()
        base.add(old)
        if now - self._past_ends <= self.guard.baseline_age:
            base.add(self._past)
        return (against, base) if base.ended >= least else ("limit", base)

    def _shared(self, hits: int, total: int, other_hits: float, other_total: float) -> bool:
        """Whether the old stack's requests in this window fare about as badly."""
        if other_total < FEW:
            return False
        if other_total < self.guard.min_samples:
            return 2.0 * other_hits * total >= hits * other_total
        return p_more(hits, total, int(other_hits), int(other_total)) > ALIKE

    def _total(self, new: bool, now: float) -> Outcomes:
        """Return all that is counted of one stack, with what has not ended after a slot or more."""
        total = Outcomes()
        for slot in self._slots.values():
            outcomes = slot.new if new else slot.old
            total.add(outcomes)
        since = self._forgotten if new else 0.0
        for began in self._running(new):
            if since <= began < self._opened:
                total.wait(now - began)
        return total

    def _sort(self) -> None:
        """Count what came in the current slot."""
        self._slot.new.sort()
        self._slot.old.sort()

    def _span(self, now: float) -> float:
        """Return how many seconds are compared."""
        return now - next(iter(self._slots.values())).ends + self._width

    def _turn(self, now: float) -> None:
        """Open the slot of ``now``, and drop what is too old."""
        self._sort()
        self._open(now)
        self._due = True
        last = int(now / self._width)
        samples = sum(slot.new.ended for slot in self._slots.values())
        for index in list(self._slots):
            age, slot = last - index, self._slots[index]
            samples -= slot.new.ended
            if age < SLOTS or (age < STRETCH * SLOTS and samples < self.guard.min_samples):
                break
            del self._slots[index]
            if slot.old.ended:
                self._past.fade(1.0 - 1.0 / MEMORY)
                self._past.add(slot.old)
                self._past_ends = slot.ends

    def _open(self, now: float) -> None:
        index = int(now / self._width)
        index += index in self._slots  # rounding may leave it a hair below the edge
        self._opened, self._edge = index * self._width, (index + 1) * self._width
        self._slot = self._slots[index] = Slot(self._edge)

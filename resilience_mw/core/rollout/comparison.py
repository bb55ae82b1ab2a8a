"""Whether the new stack is worse than the old one, as far as traffic can tell.

Keeps what happened in a window of slots, and what the old stack did before, and looks at it at the
end of each slot, and whenever the samples have grown by half; `look` says what is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .guard import RolloutGuard, Verdict
from .look import Look
from .outcomes import BATCH, Outcomes

__all__ = ["Comparison", "RolloutGuard", "Verdict"]

SLOTS = 20
"""Parts of a window; there is a look at the end of each."""
STRETCH = 10
"""Windows for which few requests of the new stack are collected."""
MEMORY = 5 * SLOTS
"""Slots over which the old stack's past is remembered."""

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
        past = self._past if now - self._past_ends <= self.guard.baseline_age else None
        found = Look(self.guard, new, old, past, self._span(now)).verdict()
        if found is not None:
            self.restart()
        return found

    def restart(self) -> None:
        """Forget what the new stack did: its share was raised again, or it was replaced."""
        for slot in self._slots.values():
            slot.new = Outcomes()
        self._forgotten = self._edge
        self._fresh, self._enough = 0, self.guard.min_samples

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

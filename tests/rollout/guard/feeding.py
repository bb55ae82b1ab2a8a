"""Traffic for a comparison, without chance."""

from __future__ import annotations

from resilience_mw.core.rollout.comparison import Comparison, RolloutGuard, Verdict

START = 500.0


class Feed:
    """A comparison that gets requests at an even pace."""

    def __init__(self, **options: float) -> None:
        self.running: dict[bool, list[float]] = {False: [], True: []}
        guard = RolloutGuard(**options)  # type: ignore[arg-type]
        self.comparison = Comparison(guard, START, self.running.__getitem__)
        self.now = START
        self._debts: dict[str, float] = {}

    def run(
        self,
        seconds: float,
        *,
        old: float = 0.0,
        new: float = 0.0,
        old_fails: float = 0.0,
        new_fails: float = 0.0,
        new_late: float = 0.0,
        old_takes: float = 0.05,
        new_takes: float = 0.05,
        hangs: bool = False,
    ) -> Verdict | None:
        """Let so many requests a second begin and end; returns the first verdict.

        Failures and lateness are shares of the requests, spread evenly.
        """
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            for _ in range(self._portion("old", old / 10)):
                self._request(False, bool(self._portion("old fails", old_fails)), old_takes)
            for _ in range(self._portion("new", new / 10)):
                if hangs:
                    self.running[True].append(self.now)
                    continue
                late = bool(self._portion("new late", new_late))
                self._request(True, bool(self._portion("fails", new_fails)), new_takes, late)
            verdict = self.comparison.verdict(self.now)
            if verdict is not None:
                return verdict
        return None

    def _request(self, new: bool, failed: bool, seconds: float, late: bool = False) -> None:
        self.comparison.record(new, failed, seconds, self.now, late)

    def _portion(self, name: str, part: float) -> int:
        """Return how many whole ones are due when ``part`` more is."""
        due = self._debts.get(name, 0.0) + part
        self._debts[name] = due - int(due + 1e-9)
        return int(due + 1e-9)

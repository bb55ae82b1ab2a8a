"""Liveness, readiness and start-up probes, answered before anything else."""

from __future__ import annotations

from .exchange import Exchange, Reply
from .lifecycle import Lifecycle, State
from .policy import Decision, Policy
from .snapshot import HealthSnapshot

OK = Reply(200, "ok", (("Cache-Control", "no-store"),))
NOT_READY = Reply(503, "not ready", (("Cache-Control", "no-store"),))
NOT_STARTED = Reply(503, "starting", (("Cache-Control", "no-store"),))
WRONG_METHOD = Reply(405, "Method Not Allowed", (("Allow", "GET, HEAD"),))


class HealthPolicy(Policy):
    """Answer the probe paths from the `Lifecycle` alone.

    Liveness is 200 as long as the process can answer at all: it never depends on load or on
    another service, since whoever fails it is killed.

    Args:
        live_path, ready_path, startup_path: exact paths, below the mount point.
        lifecycle: shared with whoever starts and stops the server; one of its own by default.
    """

    def __init__(
        self,
        live_path: str = "/livez",
        ready_path: str = "/readyz",
        startup_path: str = "/startupz",
        *,
        lifecycle: Lifecycle | None = None,
    ) -> None:
        self.lifecycle = lifecycle or Lifecycle()
        self.probes = 0
        self._answers = {
            live_path: self._live,
            ready_path: self._ready,
            startup_path: self._startup,
        }
        self._endings = (live_path, ready_path, startup_path)

    def enter(self, exchange: Exchange) -> Decision:
        """Answer a probe; let everything else pass."""
        if not exchange.full_path.endswith(self._endings):
            return None  # nearly always: the true path below a mount point costs more to tell
        answer = self._answers.get(exchange.path)
        if answer is None:
            return None
        if exchange.method not in ("GET", "HEAD"):
            return WRONG_METHOD
        self.probes += 1
        return answer()

    def ahead(self, exchange: Exchange) -> Reply | None:
        """Answer a probe at once: it must not wait for a turn of a busy event loop."""
        decision = self.enter(exchange)
        return decision if isinstance(decision, Reply) else None

    def _live(self) -> Reply:
        return OK

    def _ready(self) -> Reply:
        return OK if self.lifecycle.ready else NOT_READY

    def _startup(self) -> Reply:
        return OK if self.lifecycle.started else NOT_STARTED

    def drain(self) -> None:
        """Turn readiness to 503, for good."""
        self.lifecycle.advance(State.DRAINING)

    def snapshot(self) -> HealthSnapshot:
        """Return the state's name and the number of probes answered."""
        return HealthSnapshot(self.lifecycle.state.name.lower(), self.probes)

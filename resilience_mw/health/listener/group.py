"""What one worker answers for all of its server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...config import Health
from ...core.exchange import Reply
from ...core.health import HealthPolicy
from ...told import told_to_stop
from .board import Slot
from .request import Request

_PLAIN = (("Cache-Control", "no-store"),)

OK = Reply(200, "ok", _PLAIN)
NOT_READY = Reply(503, "not ready", _PLAIN)
STUCK = Reply(503, "stuck", _PLAIN)


class Group:
    """Puts the answers of this worker and the state of the others together.

    The server is ready, or started, if one of its workers is; it is alive as long as no worker that
    has started is stuck.

    Args:
        options: of the listener.
        others: returns what those of the other workers say of themselves that are wanted.
        now: returns the time (monotonic seconds).

    Attributes:
        policies: of the apps in this worker, nearly always one; the worst answer counts.
        beat: when the event loop of this worker last turned; 0 = it has none.
        awake_since: since when the thread has been running without a pause: after one of the whole
            process or machine, no loop is to blame for its silence.
    """

    def __init__(
        self,
        options: Health,
        others: Callable[[Callable[[Slot], bool]], Iterable[Slot]],
        now: Callable[[], float],
    ) -> None:
        self.policies: Sequence[HealthPolicy] = ()
        self.beat: Callable[[], float] = float
        self.awake_since = 0.0
        self._options = options
        self._others = others
        self._now = now

    def respond(self, request: Request, peer: str | None) -> Reply | None:
        """Return the answer; ``None`` = it is no probe."""
        reply = self._own(request, peer)
        if reply is None or request.method not in ("GET", "HEAD"):
            return reply
        options = self._options
        if request.path == options.live_path:
            return STUCK if reply.status == OK.status and self.stuck() else reply
        if request.path == options.ready_path:
            if reply.status == OK.status and told_to_stop():
                reply = NOT_READY
            if reply.status != OK.status and self._any(_is_ready):
                return OK
        elif request.path == options.startup_path and reply.status != OK.status:
            return OK if self._any(_has_started) else reply
        return reply

    def stuck(self) -> bool:
        """Whether a loop of the server has not turned for longer than it may."""
        return self.stuck_here() or self._any(lambda slot: slot.started and self._silent(slot.beat))

    def stuck_here(self) -> bool:
        """Whether the loop of this worker has not."""
        return self.started() and self._silent(self.beat())

    def _any(self, wanted: Callable[[Slot], bool]) -> bool:
        return any(True for _ in self._others(wanted))

    def _silent(self, beat: float) -> bool:
        since = self._now() - self._options.stuck_after
        return self._options.stuck_after > 0.0 < beat < since > self.awake_since

    def started(self) -> bool:
        """Whether this worker has started."""
        return bool(self.policies) and all(policy.lifecycle.started for policy in self.policies)

    def ready(self) -> bool:
        """Whether this worker is ready."""
        return self.started() and not told_to_stop() and all(p.ready for p in self.policies)

    def _own(self, request: Request, peer: str | None) -> Reply | None:
        replies = [
            reply
            for policy in self.policies
            if (
                reply := policy.answer(
                    request.path,
                    request.method,
                    query=request.query,
                    accept=request.accept,
                    peer=peer,
                )
            )
            is not None
        ]
        return max(replies, key=lambda reply: reply.status, default=None)


def _is_ready(slot: Slot) -> bool:
    return slot.ready


def _has_started(slot: Slot) -> bool:
    return slot.started

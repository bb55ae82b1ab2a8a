"""Liveness, readiness and start-up probes, answered before anything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Protocol

from .exchange import Exchange, Reply
from .gate import Gate
from .lifecycle import Lifecycle, State
from .policy import Decision, Policy
from .snapshot import CheckResult, HealthSnapshot

OK = Reply(200, "ok", (("Cache-Control", "no-store"),))
NOT_READY = Reply(503, "not ready", (("Cache-Control", "no-store"),))
NOT_STARTED = Reply(503, "starting", (("Cache-Control", "no-store"),))
WRONG_METHOD = Reply(405, "Method Not Allowed", (("Allow", "GET, HEAD"),))


FIRST_ANSWERS = 0.5
"""Seconds for which a process that is about to serve waits for the first answers of its checks.

Its first probe would else be told that nothing is known, and a balancer asks again only after an
interval of its own.
"""


class Checks(Protocol):
    """Those who ask, in the background, whether what the app needs is there.

    Nothing here waits: all of it is known already, or is not known yet.
    """

    @property
    def ready(self) -> bool:
        """Whether all that readiness depends on passes."""

    @property
    def known(self) -> bool:
        """Whether all that readiness depends on has been asked."""

    @property
    def forwarded(self) -> int | None:
        """The status that the next tier answered with last; ``None`` = none that is fresh."""

    def results(self) -> tuple[CheckResult, ...]:
        """Return what is known of each."""

    def expect(self) -> None:
        """Leave what needs the app's event loop alone until that has been given."""

    def start(self, loop: Any = None) -> None:
        """Begin to ask, in the app's event loop what needs it."""

    def touch(self) -> None:
        """Begin to ask, unless that has begun: somebody wants to know."""

    def settle(self) -> None:
        """Begin to ask, where there is no event loop to come; a worker waits for first answers."""

    def close(self) -> None:
        """Stop asking."""

    def watch(self, counts: Callable[[], tuple[int, int]]) -> None:
        """Learn how many requests were admitted and refused from now on by ``counts``."""


class Details(Protocol):
    """Describes the state to those who may know it."""

    def form(self, query: str, accept: str) -> str | None:
        """Return in which form a client asks for details; ``None`` = it does not."""

    def allows(self, peer: str | None) -> bool:
        """Whether the client at this address may know."""

    def describe(
        self, form: str, probe: str, reply: Reply, state: str, results: Sequence[CheckResult]
    ) -> Reply:
        """Return ``reply`` to a probe with its reasons."""


class Apart(Protocol):
    """Answers the same probes on a port of their own, apart from the app's requests."""

    def open(self, loop: Any = None) -> None:
        """Answer from now on, and watch whether the running ``loop`` turns."""

    def arm(self) -> None:
        """Answer as soon as this process serves."""

    def close(self) -> None:
        """Answer no more."""


class HealthPolicy(Policy):
    """Answer the probe paths from the `Lifecycle`, and from what checks have found out.

    Liveness is 200 as long as the process can answer at all: it never depends on load or on
    another service, since whoever fails it is killed.

    Args:
        live_path, ready_path, startup_path: exact paths, below the mount point.
        lifecycle: shared with whoever starts and stops the server; one of its own by default.
        checks: what readiness depends on besides.
        forward_path: exact path that answers with the next tier's status; ``None`` = off.
        failure_status: what it answers while there is no fresh one, or this process is not to be
            used itself.
        details: for those who may know more than the status; ``None`` = nobody.

    Attributes:
        apart: answers out of band; ``None`` = nobody does.
    """

    apart: Apart | None = None

    def __init__(
        self,
        live_path: str = "/livez",
        ready_path: str = "/readyz",
        startup_path: str = "/startupz",
        *,
        lifecycle: Lifecycle | None = None,
        checks: Checks | None = None,
        forward_path: str | None = None,
        failure_status: int = 503,
        details: Details | None = None,
    ) -> None:
        self.lifecycle = lifecycle or Lifecycle()
        self.checks = checks
        self.probes = 0
        self._count = count(1)
        self._details = details
        self._failure_status = failure_status
        self._forwards: dict[int, Reply] = {}
        self._live_path, self._forward_path = live_path, forward_path
        self._answers = {
            live_path: self._live,
            ready_path: self._ready,
            startup_path: self._startup,
        }
        if forward_path is not None:
            self._answers[forward_path] = self._forward
        self._endings = tuple(self._answers)

    def enter(self, exchange: Exchange) -> Decision:
        """Answer a probe; let everything else pass."""
        if not exchange.full_path.endswith(self._endings):
            return None  # nearly always: the true path below a mount point costs more to tell
        path = exchange.path
        if path not in self._answers:
            return None
        if self._details is None:
            return self.answer(path, exchange.method)
        accept = exchange.header("accept") or ""
        return self.answer(
            path, exchange.method, query=exchange.query, accept=accept, peer=exchange.certain_peer
        )

    def ahead(self, exchange: Exchange) -> Reply | None:
        """Answer a probe at once: it must not wait for a turn of a busy event loop."""
        decision = self.enter(exchange)
        return decision if isinstance(decision, Reply) else None

    def answer(
        self,
        path: str,
        method: str,
        *,
        query: str = "",
        accept: str = "",
        peer: str | None = None,
    ) -> Reply | None:
        """Return the answer to a probe, or ``None`` if it is none.

        May be called from any thread, and waits for nothing.

        Args:
            path: below the mount point, decoded, without the query.
            method: in upper case.
            query: what stands after the question mark.
            accept: the header of this name.
            peer: address of whoever is connected; ``None`` on a Unix socket.
        """
        answer = self._answers.get(path)
        if answer is None:
            return None
        if method not in ("GET", "HEAD"):
            return WRONG_METHOD
        self.probes = next(self._count)
        if self.checks is not None and self.lifecycle.ready:
            self.checks.touch()
        reply = answer()
        details = self._details
        if details is None or path == self._forward_path or not details.allows(peer):
            return reply  # without reading what somebody may have made long
        form = details.form(query, accept)
        if form is None:
            return reply
        results = () if path == self._live_path else self._results()
        return details.describe(form, path, reply, self._state(), results)

    def _live(self) -> Reply:
        return OK

    def _ready(self) -> Reply:
        return OK if self.ready else NOT_READY

    def _startup(self) -> Reply:
        return OK if self.lifecycle.started else NOT_STARTED

    def _forward(self) -> Reply:
        status = None
        if self.checks is not None and self.lifecycle.ready:
            status = self.checks.forwarded
        if status is None:
            status = self._failure_status
        reply = self._forwards.get(status)
        if reply is None:
            body = "" if status in (204, 205, 304) else "ok" if status < 400 else "unavailable"
            reply = self._forwards[status] = Reply(status, body, (("Cache-Control", "no-store"),))
        return reply

    def _results(self) -> tuple[CheckResult, ...]:
        return () if self.checks is None else self.checks.results()

    def _state(self) -> str:
        return self.lifecycle.state.name.lower()

    @property
    def ready(self) -> bool:
        """Whether traffic should be sent here."""
        return self.lifecycle.ready and (self.checks is None or self.checks.ready)

    def drain(self) -> None:
        """Turn readiness to 503, for good."""
        self.lifecycle.advance(State.DRAINING)

    def snapshot(self) -> HealthSnapshot:
        """Return the state's name, the number of probes answered and the checks."""
        return HealthSnapshot(self._state(), self.probes, self.ready, self._results())


def count_refusals(policies: Sequence[Policy]) -> None:
    """Let readiness depend on what the gates among ``policies`` refuse, where that is asked for."""
    gates = [policy for policy in policies if isinstance(policy, Gate)]
    if not gates:
        return

    def counts() -> tuple[int, int]:
        # Copied first: another thread may add a reason meanwhile.
        refused = sum(sum(gate.refused.copy().values()) for gate in gates)
        return gates[-1].admitted, refused

    for policy in policies:
        if isinstance(policy, HealthPolicy) and policy.checks is not None:
            policy.checks.watch(counts)

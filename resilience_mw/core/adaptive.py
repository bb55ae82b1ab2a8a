"""A gate whose limit is moved by a law, from what the driver senses of the server."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from random import Random

from .exchange import SKIP, Exchange, Reply, busy
from .gate import Gate
from .laws.base import Law, Senses, Window
from .policy import Decision, Policy
from .retry import retry_after
from .snapshot import GateSnapshot
from .ticket import Ticket

GLANCE = 0.002
"""Seconds between two requests whose wait an alert law is told, until it finds an overload."""


class AdaptiveGate(Gate):
    """As many requests at once as the law finds the server can bear.

    Windows end when the first request or tick after their time comes: an idle worker needs no
    timer, and a blocked one is judged by the first request that finds it awake again.

    Args:
        law: moves the limit.
        max_queue: requests that may wait for a slot; the law says for how long.
        exempt: path prefixes that are neither counted nor refused.
        smoothing_factor: weight of the newest sample in the reported latency, 0 to 1.
        trusted_proxies: networks whose word on when a request started the driver may believe.
        name: shown in snapshots.
        random: returns numbers in [0, 1), from which Retry-After is jittered.
    """

    def __init__(
        self,
        law: Law,
        *,
        max_queue: int = 100,
        exempt: tuple[str, ...] = (),
        smoothing_factor: float = 0.2,
        trusted_proxies: tuple[str, ...] = (),
        name: str = "backpressure",
        random: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(law.limit, max_queue=max_queue, exempt=exempt, name=name)
        self.law = law
        self.observes = law.observes
        self.trusted_proxies = trusted_proxies
        self._sense: Callable[[float], Senses] | None = None
        self._backlog: Callable[[], int] | None = None
        self._before: Senses | None = None
        self._window_ends = 0.0
        self._attend = 0.0  # until then, requests need no second look
        self._waits: deque[float] = deque(maxlen=500)
        self._waiting_outside = 0  # connections not accepted yet
        self._counted_at = 0.0
        self._utilization: float | None = None
        self._peak = 0
        self._latencies: list[float] = []
        self._streams: set[Exchange] = set()
        self.outside: Container[Exchange] = ()
        """Requests that run without a slot, while the gate is only tried out."""
        self._sample = self._latencies.append
        self._counted = (0, 0)  # admitted and refused when the window opened
        self._smoothing = smoothing_factor
        self._smoothed: float | None = None
        self._overdue = 0  # of the latencies
        self._random = Random().random if random is None else random
        self._retry_after = 1

    def listen(
        self, sense: Callable[[float], Senses], backlog: Callable[[], int] | None = None
    ) -> None:
        """Read the server through ``sense`` from now on, starting a new window.

        Args:
            sense: given the time, returns the cumulative readings.
            backlog: returns how many connections wait to be accepted.
        """
        self._sense = sense
        self._backlog = backlog
        self._before = None
        self._window_ends = self._attend = 0.0

    def enter(self, exchange: Exchange) -> Decision:
        """Take a slot, or a place in the queue, or be refused."""
        if self._exempt and exchange.path.startswith(self._exempt):
            return SKIP
        now = exchange.admitted or exchange.arrived
        if now >= self._attend:
            reply = self._look(exchange, now)
            if reply is not None:
                return reply
        if self.inflight < self.limit:
            self.admitted += 1
            self.inflight = running = self.inflight + 1
            if running > self._peak:
                self._peak = running
            return None
        return self._full(exchange, now)

    def ahead(self, exchange: Exchange) -> Reply | None:
        """Refuse, while saturated, what the law refuses or what finds no slot."""
        if not self._counts(exchange):
            return None
        now = exchange.arrived
        if now >= self._window_ends:
            self.tick(now)  # perhaps nobody gets further than this
        law = self.law
        if not law.saturated:
            return None
        reason = self._refusal(exchange, now) if law.alert else None
        if reason is None and self.inflight >= self.limit:
            reason = "saturated"
        return None if reason is None else self._refuse(reason)

    def _look(self, exchange: Exchange, now: float) -> Reply | None:
        """End the window if its time has come, and ask an alert law about this request."""
        if now >= self._window_ends:
            self.tick(now)
        law = self.law
        if not law.alert:
            self._attend = self._window_ends
            return None
        # One glance every few milliseconds finds an overload; only then is everybody looked at.
        self._attend = 0.0 if law.saturated else min(self._window_ends, now + GLANCE)
        reason = self._refusal(exchange, now)
        return None if reason is None else self._refuse(reason)

    def _refusal(self, exchange: Exchange, now: float) -> str | None:
        """Return why the law refuses this request by itself, or ``None``."""
        waited = exchange.waited(now)
        self._waits.append(waited)
        if self._backlog is not None and (self._waiting_outside or now >= self._counted_at):
            # Where connections are kept, it is empty all the time: a glance now and then will do.
            self._counted_at = now + GLANCE
            self._waiting_outside = self._backlog()
        return self.law.refuses(waited, self._waiting_outside)

    def exit(self, exchange: Exchange, now: float) -> None:
        """Give the slot back and take the sample, unless a policy further in answered."""
        self.inflight -= 1
        if exchange.refused is None:
            # From admission, not arrival: our own queue inside the sample would be positive
            # feedback.
            begun = exchange.admitted or exchange.arrived
            if not self.observes:
                self._sample((exchange.answered_at or now) - begun)
            elif self._streams and exchange in self._streams:
                self._streams.remove(exchange)
                self._fit()
            elif exchange.overdue:
                self._overdue += 1
                self._sample(now - begun)  # it would have taken at least that long
            elif exchange.answered_at and exchange.status < 500:
                # What failed, and who left, says nothing about how long the work takes.
                self._sample(exchange.answered_at - begun)
        if self._queue:
            self._hand_on()

    def stream(self, exchange: Exchange) -> None:
        """Note that a response goes on after its first part: server-sent events, a long download.

        It keeps its slot, but a law that observes responses no longer takes it for work: the
        limit in force is the law's plus one for each stream, up to the law's greatest.
        """
        if self._exempt and exchange.path.startswith(self._exempt):
            return
        if self.observes and exchange not in self._streams and exchange not in self.outside:
            self._streams.add(exchange)
            self._sample(exchange.answered_at - (exchange.admitted or exchange.arrived))
            self._fit()
            self._hand_on()

    def tick(self, now: float) -> None:
        """End the window if its time has come."""
        if now < self._window_ends or self._sense is None:
            return
        senses, before = self._sense(now), self._before
        self._before = senses
        self._window_ends = now + self.law.window
        self._attend = 0.0
        if before is not None and senses.at > before.at:
            self._close_window(now, senses, before)
        self._peak = self.inflight
        self._counted = (self.admitted, sum(self.refused.values()))
        self._latencies.clear()

    def snapshot(self) -> GateSnapshot:
        """Return the state, with utilization and smoothed latency."""
        return GateSnapshot(
            name=self.name,
            limit=self.limit,
            inflight=self.inflight,
            queued=self.queued,
            admitted=self.admitted,
            refused=dict(self.refused),
            law=self.law.name,
            elu=self._utilization,
            smoothed_latency=self._smooth(),
            waited_p50=_quantile(self._waits, 0.5),
            waited_p99=_quantile(self._waits, 0.99),
            baseline=self.law.baseline,
            overloaded=self.law.saturated,
            streams=len(self._streams),
        )

    def _smooth(self) -> float | None:
        """Return the smoothed latency with the samples of the open window folded in."""
        smoothed = self._smoothed
        for latency in self._latencies:
            base = latency if smoothed is None else smoothed
            smoothed = base + self._smoothing * (latency - base)
        return smoothed

    def _close_window(self, now: float, senses: Senses, before: Senses) -> None:
        length = senses.at - before.at
        self._utilization = min(1.0, max(0.0, (senses.busy - before.busy) / length))
        self._smoothed = self._smooth()
        admitted, refused = self._counted
        refused = sum(self.refused.values()) - refused
        streams = len(self._streams)
        self.law.update(
            Window(
                now=now,
                length=length,
                utilization=self._utilization,
                turns=max(0, senses.turns - before.turns),
                inflight=self.inflight - streams,
                peak=max(self.inflight, self._peak) - streams,
                queued=self.queued,
                refused=refused,
                arrivals=max(refused, self.admitted - admitted + refused),
                latencies=tuple(self._latencies),
                backlog=self._backlog() if self._backlog is not None else 0,
                pool_waiting=senses.pool_waiting,
                overdue=self._overdue,
            )
        )
        self._overdue = 0
        self._fit()
        self._advise(length)
        self._shorten(now)
        self._hand_on()

    def _shorten(self, now: float) -> None:
        """Hold whoever waits to the patience of now: they were promised that of a calmer time."""
        queue = self._queue
        patience = self._patience(now) if queue else 0.0
        while queue and now - queue[0].queued_at > patience:
            queue.popleft().refuse(self._refuse("queue_timeout"))

    def _fit(self) -> None:
        law = self.law
        self.limit = min(law.max_limit, law.limit + len(self._streams))

    def _advise(self, length: float) -> None:
        """Set the Retry-After of this window's refusals, which are rendered once."""
        demand = self.law.demand
        if demand is None:
            return
        drain = self.queued * length / max(1, len(self._latencies))
        seconds = retry_after(demand, drain, self._random)
        if seconds != self._retry_after:
            self._retry_after = seconds
            self._replies.clear()

    def _refuse(self, reason: str) -> Reply:
        if reason not in self._replies and reason != "deadline":
            self._replies[reason] = busy(reason, self._retry_after)
        return super()._refuse(reason)

    def _full(self, exchange: Exchange, now: float) -> Reply | Ticket:
        if self.law.saturated:
            return self._refuse("saturated")
        return super()._full(exchange, now)

    def _patience(self, now: float) -> float:
        return self.law.patience(now)


def adaptive_gates(policies: Sequence[Policy]) -> list[AdaptiveGate]:
    """Return the gates among ``policies`` that need senses, also those in shadow mode."""
    inner = [getattr(policy, "gate", policy) for policy in policies]
    return [policy for policy in inner if isinstance(policy, AdaptiveGate)]


def _quantile(values: Iterable[float], share: float) -> float | None:
    ordered = sorted(values)
    return ordered[int(share * (len(ordered) - 1))] if ordered else None

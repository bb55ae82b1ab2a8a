"""An adaptive gate with a law that only listens, in a server that is set by hand."""

from __future__ import annotations

from resilience_mw.core import AIMD, AdaptiveGate, Senses, Window

from .requests import Request


class Recorder(AIMD):
    """A law that keeps its limit and what it is told."""

    def __init__(self, limit: int = 2, *, observes: bool = False) -> None:
        super().__init__(initial_limit=limit, max_limit=10, queue_timeout=3.0)
        self.observes = observes
        self.windows: list[Window] = []
        self.asked: list[tuple[float, int]] = []
        self.answer: str | None = None

    def update(self, window: Window) -> int:
        """Keep the window."""
        self.windows.append(window)
        return self.limit

    def refuses(self, waited: float, backlog: int) -> str | None:
        """Answer as told."""
        self.asked.append((waited, backlog))
        return self.answer


class Server:
    """What a gate senses, set by hand."""

    def __init__(self) -> None:
        self.busy, self.turns, self.backlog, self.reads = 0.0, 0, 0, 0

    def sense(self, now: float) -> Senses:
        """Read the counters."""
        self.reads += 1
        return Senses(now, self.busy, self.turns, 3)

    def depth(self) -> int:
        """Read the accept queue."""
        return self.backlog


def build(law: AIMD, max_queue: int = 5) -> tuple[AdaptiveGate, Server]:
    """Return a gate in its first window, which began at 100."""
    gate, server = AdaptiveGate(law, max_queue=max_queue), Server()
    gate.listen(server.sense, server.depth)
    gate.tick(100.0)
    return gate, server


def run(gate: AdaptiveGate, arrived: float, ended: float, **response: object) -> Request:
    """Serve one request from beginning to end."""
    request = Request(arrived)
    assert gate.enter(request) is None
    for name, value in response.items():
        setattr(request, name, value)
    gate.exit(request, ended)
    return request

"""Many threads through one guard, switched as often as the interpreter can."""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from resilience_mw.core import AIMD, AdaptiveGate, DeadlinePolicy, Gate, HealthPolicy
from resilience_mw.wsgi import Guard
from tests.wsgi.harness import Response, environ

THREADS, EACH, LIMIT = 64, 25, 7


@pytest.fixture(autouse=True)
def _switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Broken(Exception):
    """Raised by the app."""


class Meter:
    """How many are inside at once, told by the app itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = self.most = self.entered = 0

    def __enter__(self) -> None:
        with self._lock:
            self.entered += 1
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self.now -= 1


def build(max_queue: int, max_wait: float):
    """Return a guard, its gates, and the meter inside its app."""
    meter = Meter()

    def app(environ, start_response):
        kind = environ["x.kind"]
        if kind == "raise":
            with meter:
                raise Broken
        if kind == "stream":
            return stream(start_response)
        with meter:
            start_response("200 OK", [])
            time.sleep(0.0002)
        return [b"ok"]

    def stream(start_response):
        with meter:
            start_response("200 OK", [])
            yield b"o"
            time.sleep(0.0002)
            yield b"k"

    gate = Gate(LIMIT, max_queue=max_queue, max_wait=max_wait, name="fixed")
    adaptive = AdaptiveGate(AIMD(initial_limit=50, max_limit=50, window=0.005))
    row = (HealthPolicy(), DeadlinePolicy(30.0), gate, adaptive)
    return Guard(app, *row), gate, adaptive, meter


@pytest.mark.parametrize(
    ("max_queue", "max_wait"), [(0, 0.0), (THREADS, 30.0), (10, 0.002)],
    ids=["no queue", "long queue", "short waits"],
)  # fmt: skip
def test_nothing_is_leaked_and_the_limit_is_never_exceeded(max_queue, max_wait):
    """64 threads at once: answers, streams, failures, bodies closed twice or never."""
    guard, gate, adaptive, meter = build(max_queue, max_wait)
    together = threading.Barrier(THREADS)
    outcomes: list[Counter[str]] = []
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        draw = random.Random(seed)
        mine: Counter[str] = Counter()
        together.wait(30.0)
        for _ in range(EACH):
            kind = draw.choice(["plain", "plain", "stream", "raise"])
            path = "/livez" if draw.random() < 0.05 else "/"
            response = Response()
            try:
                response.body = guard(environ(path, **{"x.kind": kind}), response.start)
                b"".join(response.body)
                for _ in range(draw.choice([0, 1, 1, 1, 2])):
                    getattr(response.body, "close", bool)()
            except Broken:
                mine["failed"] += 1
            else:
                mine[str(response.status)] += 1
            response.body = None
            assert gate.inflight <= LIMIT
        outcomes.append(mine)

    def watched(seed: int) -> None:
        try:
            work(seed)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=watched, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert problems == []
    assert not any(thread.is_alive() for thread in threads)
    gc.collect()
    snapshot = guard.snapshot()
    assert (snapshot.inflight, snapshot.queued) == (0, 0)
    assert (gate.inflight, gate.queued, adaptive.inflight, adaptive.queued) == (0, 0, 0, 0)
    assert 1 < meter.most <= LIMIT
    assert meter.now == 0
    assert gate.admitted == adaptive.admitted == meter.entered
    probes = snapshot.policies[0].probes
    assert sum(outcome.total() for outcome in outcomes) == THREADS * EACH
    assert meter.entered + probes + sum(gate.refused.values()) == THREADS * EACH
    if max_queue == THREADS:
        assert gate.refused == {}


def test_guards_that_share_a_limit_keep_it_together():
    """Two apps in one process, one gate: its counts are safe whoever changes them."""
    meter = Meter()
    gate = Gate(3)

    def app(environ, start_response):
        with meter:
            start_response("200 OK", [])
            time.sleep(0.0001)
        return [b"ok"]

    guards = [Guard(app, gate) for _ in range(2)]
    together = threading.Barrier(16)

    def work(number: int) -> None:
        together.wait(30.0)
        for _ in range(100):
            response = Response()
            response.body = guards[number % 2](environ(), response.start)
            response.read()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert (gate.inflight, gate.admitted) == (0, meter.entered)
    assert meter.most <= 3
    assert gate.admitted + sum(gate.refused.values()) == 1600

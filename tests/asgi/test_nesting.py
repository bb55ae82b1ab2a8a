"""Guards inside guards that could not be merged."""

from __future__ import annotations

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from resilience_mw.asgi import Guard
from resilience_mw.core import AIMD, AdaptiveGate, DeadlinePolicy, Gate, HealthPolicy

from .harness import PATIENCE, aside, call, hello, run


class Watching(AdaptiveGate):
    """An adaptive gate that says how many samples it has taken."""

    def __init__(self) -> None:
        super().__init__(AIMD())

    @property
    def samples(self) -> int:
        """Samples of the window that is open."""
        return len(self._latencies)


@pytest.mark.parametrize(
    "inner", [Gate(0), AdaptiveGate(AIMD(initial_limit=1, max_limit=1), max_queue=0)], ids=type
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_refusal_further_in_is_no_sample_for_any_gate_further_out(inner, depth):
    """However many guards are in between: it was quick because nothing was done."""

    async def main():
        inner.inflight = 1
        stack = Guard(hello, inner)
        inner.driver = None
        outer = [Watching() for _ in range(depth)]
        guards = [stack]
        for gate in outer:
            guards.append(Guard(aside(guards[-1]), gate))
        for _ in range(3):
            assert (await call(guards[-1])).status == 503
        assert [gate.samples for gate in outer] == [0] * depth
        assert [gate.inflight for gate in outer] == [0] * depth
        inner.inflight = 0
        if inner.limit:
            assert (await call(guards[-1])).status == 200
            assert [gate.samples for gate in outer] == [1] * depth
        for guard in guards:
            guard.close()

    run(main())


def test_a_probe_further_in_is_no_sample():
    """It is answered without the app."""

    async def main():
        gate = Watching()
        inner = Guard(hello, HealthPolicy())
        outer = Guard(aside(inner), gate)
        assert (await call(outer, "/livez")).status == 200
        assert gate.samples == 0
        assert (await call(outer, "/")).status == 200
        assert gate.samples == 1
        outer.close()

    run(main())


def test_a_call_to_another_app_from_inside_is_another_request():
    """What that refuses is not this one's refusal, and its end is not this one's."""

    async def main():
        gate = Watching()
        other = Guard(hello, Gate(0))

        async def app(scope, receive, send):
            assert (await call(other)).status == 503
            await hello(scope, receive, send)

        guard = Guard(app, gate)
        assert (await call(guard)).status == 200
        assert (gate.samples, gate.inflight) == (1, 0)
        guard.close()

    run(main())


def test_one_app_may_have_guards_by_route():
    """Each counts what goes to it; a refusal of one is no refusal of the other."""

    async def main():
        async def endpoint(request):
            return PlainTextResponse("ok")

        gates = {"a": Gate(1), "b": Gate(0)}
        routes = [
            Mount(f"/{name}", Guard(Starlette(routes=[Route("/x", endpoint)]), gate))
            for name, gate in gates.items()
        ]
        whole = Watching()
        guard = Guard(Starlette(routes=routes), whole)
        answers = [(await call(guard, path)).status for path in ("/a/x", "/b/x", "/a/x", "/c")]
        assert answers == [200, 503, 200, 404]
        assert (gates["a"].admitted, gates["b"].refused) == (2, {"limit": 1})
        assert whole.samples == 3
        guard.close()

    run(main())


def test_exempt_paths_of_a_mounted_guard_are_below_its_mount():
    """Its prefixes are of the app it guards."""

    async def main():
        async def endpoint(request):
            return PlainTextResponse("ok")

        inner = Starlette(routes=[Route("/static/x", endpoint), Route("/y", endpoint)])
        guard = Starlette(routes=[Mount("/shop", Guard(inner, Gate(0, exempt=("/static/",))))])
        assert (await call(guard, "/shop/static/x")).status == 200
        assert (await call(guard, "/shop/y")).status == 503

    run(main())


def test_requests_side_by_side_do_not_see_each_other():
    """Each has its own exchange, also in one task after another."""

    async def main():
        gate = Watching()
        guard = Guard(aside(Guard(hello, Gate(1))), gate)
        answers = await asyncio.gather(*(call(guard) for _ in range(20)))
        assert {answer.status for answer in answers} <= {200, 503}
        served = sum(answer.status == 200 for answer in answers)
        assert (gate.samples, gate.inflight) == (served, 0)
        guard.close()

    run(main())


@pytest.mark.parametrize("copies", [False, True], ids=["same scope", "copied scope"])
def test_a_guard_further_in_may_outlive_the_one_further_out(copies):
    """A middleware may answer early and let the app go on: each gives back what it took."""

    async def main():
        go = asyncio.Event()
        tasks = []
        inner_gate, outer_gate = Watching(), Watching()

        async def slow(scope, receive, send):
            await go.wait()

        inner = Guard(slow, DeadlinePolicy(PATIENCE), inner_gate)

        async def early(scope, receive, send):
            handed = dict(scope) if copies else scope
            tasks.append(asyncio.create_task(inner(handed, receive, send)))
            await asyncio.sleep(0)
            await hello(scope, receive, send)

        outer = Guard(early, DeadlinePolicy(PATIENCE), outer_gate)
        assert (await call(outer)).status == 200
        assert (inner_gate.inflight, outer_gate.inflight) == (1, 0)
        go.set()
        await asyncio.gather(*tasks)
        assert (inner_gate.inflight, outer_gate.inflight) == (0, 0)
        inner.close()
        outer.close()

    run(main())

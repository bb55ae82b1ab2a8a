"""An upstream that is stopped and started anew, under load."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from contextlib import ExitStack

import pytest

from benchmarks.process import HOST, Server
from resilience_mw import RolloutRule
from resilience_mw.asgi import RolloutMiddleware
from resilience_mw.rollout.proxy.asgi import proxy
from tests.asgi.harness import Exchange, hello, run, scope
from tests.servers import uvicorn

APP = "tests.rollout.proxy.upstream_app:app"


@pytest.mark.parametrize("stop", [Server.stop, Server.kill], ids=["SIGTERM", "SIGKILL"])
def test_no_request_fails_while_the_new_stack_is_away(stop):
    """The old one answers until it is there again."""
    found: Counter[tuple[int | None, bool]] = Counter()

    async def ask(app: RolloutMiddleware, done: asyncio.Event) -> None:
        while not done.is_set():
            exchange = await Exchange(scope("/echo")).through(app)
            found[exchange.status, exchange.text == b"ok"] += 1
            await asyncio.sleep(0.002)

    async def main(first: Server, servers: ExitStack) -> None:
        new = proxy(first.url, raises=True)
        rule = RolloutRule("all", prefix="/", percent=100)
        app = RolloutMiddleware(hello, new=new, rules=[rule], fallback=True, guard=False)
        done = asyncio.Event()
        asking = [asyncio.create_task(ask(app, done)) for _ in range(8)]
        await asyncio.sleep(0.3)
        await asyncio.to_thread(stop, first)
        await asyncio.sleep(0.3)
        before = found[200, False]
        flags = ["-m", "uvicorn", "--host", HOST, "--port", str(first.port), APP]
        again = servers.enter_context(Server([sys.executable, *flags], first.port))
        await asyncio.to_thread(again.wait_until_serving, 10)
        await asyncio.sleep(0.3)
        done.set()
        await asyncio.gather(*asking)
        assert found[200, False] > before > 0, found
        app.close()
        await new.aclose()

    with ExitStack() as servers:
        run(main(servers.enter_context(uvicorn(APP)), servers))
    assert set(found) == {(200, True), (200, False)}, found

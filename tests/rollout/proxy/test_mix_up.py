"""Many requests at once, of which some are given up at any moment: each gets its own answer."""

from __future__ import annotations

import asyncio
import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from resilience_mw.rollout.proxy.asgi import proxy as asgi_proxy
from resilience_mw.rollout.proxy.wsgi import proxy as wsgi_proxy
from tests.asgi.harness import Exchange, run, scope
from tests.wsgi.harness import begin

SIZES = (0, 10, 70_000, 300_000)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_answers_are_not_mixed_up_under_asgi(upstream, loop):
    """Clients leave before, while and after the upstream answers."""
    chance = random.Random(5)

    async def ask(app: object, number: int) -> bool:
        body = bytes(chance.choice(SIZES))
        head = scope(f"/{number}", method="POST", headers=[(b"transfer-encoding", b"chunked")])
        exchange = Exchange(head, [{"type": "http.request", "body": body}])
        call = exchange.start(app)
        if chance.random() < 0.5:
            await asyncio.sleep(chance.random() * 0.01)
            exchange.gone.set()
        await call
        if not exchange.text:
            return False
        report = json.loads(exchange.text)
        assert (report["path"], report["body"]) == (f"/{number}", len(body))
        return True

    async def main() -> None:
        app = asgi_proxy(upstream.url, max_connections=6, connect_timeout=8)
        answered = await asyncio.gather(*(ask(app, number) for number in range(300)))
        assert 100 < sum(answered) <= 300
        assert len(app.pools.current().idle) <= 6
        assert app.pools.current().slots.value == 6
        last = [await ask(app, number) for number in range(20)]
        assert any(last)
        await app.aclose()

    run(main(), loop)


def test_answers_are_not_mixed_up_under_wsgi(upstream):
    """Servers close some responses early."""
    app = wsgi_proxy(upstream.url, max_connections=6, connect_timeout=8)

    def ask(number: int) -> bool:
        response = begin(app, f"/{number}")
        assert response.status == 200
        if number % 3 == 0:
            response.body.close()
            return False
        assert json.loads(response.read())["path"] == f"/{number}"
        return True

    with ThreadPoolExecutor(12) as threads:
        answered = list(threads.map(ask, range(300)))
    assert sum(answered) == 200
    app.close()

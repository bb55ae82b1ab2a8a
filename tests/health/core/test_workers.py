"""Workers of Gunicorn that come and go."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.health.core.test_servers import get
from tests.health.core.waiting import until
from tests.servers import Server, gunicorn

APP = "tests.health.core.apps:wsgi"


@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["plain", "preload"])
def test_no_restart_of_a_worker_is_seen_in_readiness(
    preload: list[str], serve: Callable[[Server], Server]
):
    """A worker serves when it knows how its checks stand."""
    server = serve(gunicorn(APP, worker="sync", args=[*preload, "--max-requests", "10"]))
    until(lambda: get(server, "/readyz") == (200, "ok"))
    pids, answers = set(), set()
    for _ in range(30):
        answers.add(get(server, "/readyz"))
        pids.add(get(server, "/")[1].partition(" ")[0])
    assert len(pids) > 4
    assert answers <= {(200, "ok"), (0, "closed")}


def test_a_worker_that_gevent_patches_after_the_fork_asks(serve: Callable[[Server], Server]):
    """What was imported before has the locks and queues of threads, which would hang for ever."""
    server = serve(gunicorn("tests.health.core.many:app", worker="gevent", args=["--preload"]))
    until(lambda: get(server, "/readyz") == (200, "ok"))
    assert get(server, "/readyz?verbose")[1].count("[+]n") == 100
    assert get(server, "/") == (200, "hello")

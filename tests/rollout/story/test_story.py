"""The seed's story on real processes: a page moves from one stack to another, and back at once."""

from __future__ import annotations

import math
import os
import shutil
import time

import pytest

from tests.rollout.redis_server import PROGRAM
from tests.rollout.story.apps import RULES
from tests.rollout.story.shop import rollout, server_names, shop, store_of
from tests.rollout.story.visitors import USERS, Visit, Visitors

STEPS = [0.0, 2.0, 25.0, 50.0, 100.0]
EFFECTIVE = 1.0
"""Seconds after a command by which every server follows."""
SETTLED = 1.3
"""Seconds of traffic after that, in each step."""

slow = pytest.mark.skipif(not os.environ.get("SLOW"), reason="takes half a minute: SLOW=1")


def expected(visit: Visit, percent: float) -> str:
    """Return which stack has to answer, by the rules alone."""
    favourites, cart = RULES
    if visit.path == "/cart":
        return "new" if cart.includes(visit.user, percent) else "old"
    return "new" if favourites.includes(visit.server, percent) else "old"


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
@pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="Redis is not installed")
@pytest.mark.parametrize(
    ("interface", "kind"),
    [("asgi", "redis"), pytest.param("wsgi", "file", marks=slow)],
)
def test_the_roll_out_of_a_page(interface, kind, tmp_path):
    """0, 2, 25, 50, 100 % and back: no request fails, and everybody is where they should be."""
    with store_of(kind, tmp_path) as store, shop(tmp_path, interface, store) as front:
        with Visitors(front, rate=80.0) as visitors:
            spans = []
            for percent in STEPS:
                for rule in RULES:
                    done = rollout(store, "set", rule.name, f"{percent:g}", "--yes")
                time.sleep(EFFECTIVE + SETTLED)
                spans.append((percent, done + EFFECTIVE, time.monotonic()))
            done = rollout(store, "rollback")
            time.sleep(EFFECTIVE + SETTLED)
            spans.append((0.0, done + EFFECTIVE, time.monotonic()))
        visits = visitors.visits

    assert len(visits) > 500
    assert [visit for visit in visits if visit.status != 200] == []
    assert {visit.server for visit in visits} == set(server_names())
    for percent, since, until in spans:
        seen = [visit for visit in visits if since <= visit.began and visit.ended <= until]
        assert len(seen) > 50
        wrong = [visit for visit in seen if visit.stack != expected(visit, percent)]
        assert wrong == [], f"at {percent:g} %"
        users = {visit.user: visit.stack for visit in seen if visit.path == "/cart"}
        share, total = percent / 100, len(users)
        count = sum(stack == "new" for stack in users.values())
        assert abs(count - total * share) <= 5 * math.sqrt(total * share * (1 - share)) + 1
    assert stays(visits, spans)


def stays(visits: list[Visit], spans: list[tuple[float, float, float]]) -> bool:
    """Whether no user changes sides but with the share: once up, and once back."""
    rising, (_, back, _) = spans[:-1], spans[-1]
    settled = [
        visit
        for visit in sorted(visits, key=lambda visit: visit.began)
        if visit.path == "/cart"
        and any(since <= visit.began and visit.ended <= until for _, since, until in rising)
    ]
    for number in range(USERS):
        stacks = [visit.stack for visit in settled if visit.user == f"user-{number}"]
        if stacks != sorted(stacks, reverse=True):  # "old" first, then "new"
            return False
    return all(visit.stack == "old" for visit in visits if visit.began >= back)

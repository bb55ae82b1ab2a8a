"""A new stack that goes wrong in the middle of a roll-out, on real processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pytest

from benchmarks.process import ROOT
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import open_store
from tests.rollout.story.shop import rollout, shop, store_of
from tests.rollout.story.visitors import Visitors

WINDOW = 6.0
EFFECTIVE = 1.0

slow = pytest.mark.skipif(not os.environ.get("SLOW"), reason="a minute with its like: SLOW=1")


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
@pytest.mark.parametrize(
    ("interface", "trouble"),
    [
        ("asgi", "fails"),
        pytest.param("wsgi", "fails", marks=slow),
        pytest.param("asgi", "hangs", marks=slow),
        pytest.param("wsgi", "hangs", marks=slow),
        pytest.param("asgi", "slow", marks=slow),
        pytest.param("wsgi", "slow", marks=slow),
    ],
)
def test_a_new_stack_that_goes_wrong_is_taken_back_everywhere(interface, trouble, tmp_path):
    """By one server's guard, within its window; then nobody raises it before it is cleared."""
    with (
        store_of("file", tmp_path) as url,
        shop(tmp_path, interface, url, servers=3, window=WINDOW) as front,
        # Many, so that those who wait in vain leave enough others to be seen.
        Visitors(front, 120.0, ["/cart"], patience=1.0, threads=24) as visitors,
    ):
        store = open_store(url)
        rollout(url, "set", "cart", "50", "--yes")
        time.sleep(WINDOW)
        assert store.load()["cart"] == Share(50.0)

        (tmp_path / "trouble").write_text(trouble)
        began = time.monotonic()
        while not store.load()["cart"].held:
            assert time.monotonic() < began + WINDOW + EFFECTIVE
            time.sleep(0.02)
        back = time.monotonic() + EFFECTIVE
        time.sleep(EFFECTIVE + 1.0)
        refused = subprocess.run(
            [sys.executable, "-m", "resilience_mw", "rollout", "set", "cart", "5", "--store", url],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=30,
        )
    change = next(change for change in store.history(10) if change.who == "guard")
    assert (change.rule, change.before, change.after) == ("cart", Share(50.0), Share(0.0, True))
    reasons = {"fails": ["errors"], "slow": ["latency"], "hangs": ["hangs", "latency"]}[trouble]
    assert change.why.partition(":")[0] in reasons
    assert "requests on the new stack" in change.why
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "held" in refused.stderr
    later = [visit for visit in visitors.visits if visit.began >= back]
    assert {(visit.status, visit.stack) for visit in later} == {(200, "old")}
    before = [visit for visit in visitors.visits if visit.ended < began]
    assert {visit.status for visit in before} == {200}

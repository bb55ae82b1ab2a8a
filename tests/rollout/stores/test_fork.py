"""Servers that load the app before they fork: each child follows by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.process import ROOT

PROGRAM = """
import os, sys, time
from resilience_mw.rollout.follower import Follower
from resilience_mw.rollout.stores import open_store

store = open_store(sys.argv[1])
store.change("favourites", 2, who="anna")
states = []
follower = Follower(store, lambda shares: states.append(shares["favourites"].percent))
follower.start(wait=20)
follower._lock.acquire()  # as if its thread were in the midst of something
children = []
for number in range(3):
    pid = os.fork()
    if pid == 0:
        if number == 2:
            follower.submit("cart", who="guard")
        end = time.monotonic() + 30
        while states[-1] != 50 and time.monotonic() < end:
            time.sleep(0.01)
        follower.close()
        os._exit(0 if states[-1] == 50 else 1)
    children.append(pid)
follower._lock.release()
store.change("favourites", 50, who="anna")
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
print(codes, sorted(store.load()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_follows_with_a_thread_of_its_own(tmp_path: Path):
    """Three children of a process that follows already, forked while its lock is held."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"file:{tmp_path / 'rollout.toml'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("[0, 0, 0] ['cart', 'favourites']\n", 0), ran.stderr

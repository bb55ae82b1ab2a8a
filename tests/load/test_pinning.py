from __future__ import annotations

import os

import pytest

from benchmarks import pinning


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin")
def test_server_and_generator_are_kept_apart():
    """The servers' CPU is none of ours while it lasts, and afterwards all is as before."""
    before = os.sched_getaffinity(0)
    with pinning.pinned() as cpu:
        ours = os.sched_getaffinity(0)
        assert (cpu is None) == (len(before) < 2)
        assert cpu is None or (cpu in before and cpu not in ours)
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("available", [set(), {0}])
def test_without_a_second_cpu_nothing_is_pinned(available, monkeypatch):
    """One CPU, or a system that cannot pin, is used as it is."""
    monkeypatch.setattr(pinning, "_available", lambda: available)
    with pinning.pinned() as cpu:
        assert cpu is None

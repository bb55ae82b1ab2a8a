"""Which processes belong to one server."""

from __future__ import annotations

import os
import sys

import pytest

from resilience_mw.family import become_origin, family, related


def test_workers_of_gunicorn_are_their_masters(monkeypatch: pytest.MonkeyPatch):
    """All that it has forked."""
    pytest.importorskip("gunicorn.arbiter")
    monkeypatch.setenv("SERVER_SOFTWARE", "gunicorn/27.0.1")
    assert family() == os.getppid()


@pytest.mark.parametrize("software", [None, "", "other/1"])
def test_gunicorn_need_not_run_where_it_is_imported(software, monkeypatch: pytest.MonkeyPatch):
    """What two other servers were started by, a shell perhaps, makes them none of one."""
    monkeypatch.setitem(sys.modules, "gunicorn.arbiter", sys)
    monkeypatch.delenv("SERVER_SOFTWARE", raising=False)
    if software is not None:
        monkeypatch.setenv("SERVER_SOFTWARE", software)
    become_origin()
    assert family() == os.getpid()


def test_a_master_in_the_place_of_another():
    """Its workers and those of the one that it replaces are one server, for a while."""
    assert related(os.getpid(), os.getpid())
    assert related(os.getpid(), os.getppid())
    assert related(os.getppid(), os.getpid())
    assert not related(os.getpid(), 2**22 + 1)

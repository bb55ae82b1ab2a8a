"""What a listener leaves behind: nothing, in its process, in a child of it, and on the disk."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.process import Server
from resilience_mw.health.listener import outofband
from resilience_mw.health.listener.file import name_of, places
from resilience_mw.health.listener.haste import SHORT

from .computing import computing
from .launching import launch
from .probing import Port, until


def shared_file(port: Port) -> Path:
    """Return where the workers of a server on this port meet."""
    found = [path for place in places() if (path := place / name_of(port.port)).exists()]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    "kind",
    ["uvicorn", "gunicorn sync, two workers", "our runner, two workers", "our adapter, asgi"],
)
def test_no_file_after_a_server_that_was_stopped(kind: str, serve: Callable[[Server], Server]):
    """Each worker leaves its slot, and the last one removes the file."""
    server, port = launch(kind)
    serve(server)
    until(lambda: port.status() == 200)
    path = shared_file(port)
    server.signal(signal.SIGTERM)
    server.wait(20.0)
    assert not path.exists()


def test_a_child_computes_in_usual_turns(opened):
    """Although it was forked while the listener had shortened those of its process."""
    usual = sys.getswitchinterval()
    port, _ = opened()
    with computing():
        until(lambda: sys.getswitchinterval() == pytest.approx(SHORT))
        pid = os.fork()
        if pid == 0:
            os._exit(int(sys.getswitchinterval() != pytest.approx(usual)))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert port.status() == 200


def test_the_end_of_a_process_is_in_order(opened):
    """It waits for the thread, and not for long if that is gone already."""
    port, _ = opened()
    path = shared_file(port)
    begun = time.monotonic()
    outofband._at_exit()
    assert port.ask() is None
    assert not path.exists()
    outofband._at_exit()
    assert time.monotonic() - begun < 5.0

from __future__ import annotations

import errno
import os

import pytest

from benchmarks.overload.meter import Meter
from benchmarks.overload.protections import Machine, Serving
from tests.servers import UVICORN

resource = pytest.importorskip("resource")


def take_all(taken):
    while True:
        taken.append(os.open(os.devnull, os.O_RDONLY))


def test_the_meter_works_when_all_descriptors_are_taken(serve):
    """An overload that takes every socket is still measured."""
    server = serve(UVICORN["uvicorn-httptools-asyncio"]("tests.load.hello:app"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    meter = Meter(Machine(0, None, 1), Serving(server, None))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[0], 256), limits[1]))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
            take_all(taken)
        meter.start()
        usage = meter.stop()
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert usage.server >= 0
    assert usage.front == 0

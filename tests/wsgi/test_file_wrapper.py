"""Files that the server sends by itself: its wrapper is kept, and its close is heard."""

from __future__ import annotations

import gc
import io
from wsgiref.util import FileWrapper

import pytest
from waitress.buffers import ReadOnlyFileBasedBuffer

from resilience_mw.core import Gate
from resilience_mw.wsgi import Guard

from .harness import aside, begin

WRAPPERS = {"wsgiref": FileWrapper, "waitress": ReadOnlyFileBasedBuffer}


def download(file):
    """Return an app that hands ``file`` to the server's wrapper."""

    def app(environ, start_response):
        start_response("200 OK", [])
        return environ["wsgi.file_wrapper"](file)

    return app


@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("nested", [False, True])
def test_a_file_stays_the_servers_own_wrapper(wrapper, nested):
    """Servers recognize it by its class, and use sendfile; the slot is held until it is closed."""
    gates = [Gate(1), Gate(1)]
    file = io.BytesIO(b"x" * 10_000)
    app = Guard(download(file), gates[0])
    if nested:
        app = Guard(aside(app), gates[1])
    response = begin(app, **{"wsgi.file_wrapper": wrapper})
    assert type(response.body) is wrapper
    assert sum(gate.inflight for gate in gates) == 1 + nested
    assert b"".join(response.body) == b"x" * 10_000
    response.body.close()
    response.body.close()
    assert file.closed
    assert [gate.inflight for gate in gates] == [0, 0]


@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=WRAPPERS)
def test_a_file_that_is_never_closed_gives_its_slot_back(wrapper):
    """When the server drops it."""
    gate = Gate(1)
    response = begin(Guard(download(io.BytesIO(b"x")), gate), **{"wsgi.file_wrapper": wrapper})
    assert gate.inflight == 1
    response.body = None
    gc.collect()
    assert gate.inflight == 0


def test_a_file_whose_close_raises_gives_its_slot_back():
    """The server sees the error."""

    class Broken(io.BytesIO):
        def close(self):
            raise OSError("broken")

    gate = Gate(1)
    file = Broken(b"x")
    response = begin(Guard(download(file), gate), **{"wsgi.file_wrapper": FileWrapper})
    with pytest.raises(OSError, match="broken"):
        response.body.close()
    assert gate.inflight == 0
    del file.__class__.close


def test_a_wrapper_that_is_closed_to_us_ends_with_the_call():
    """Written in C, say: better a slot too early than one for ever."""

    class Closed:
        __slots__ = ("file",)

        def __init__(self, file):
            self.file = file

        def __iter__(self):
            return iter(self.file)

        def close(self):
            self.file.close()

    gate = Gate(1)
    response = begin(Guard(download(io.BytesIO(b"x")), gate), **{"wsgi.file_wrapper": Closed})
    assert type(response.body) is Closed
    assert gate.inflight == 0
    assert response.read() == b"x"


def test_a_wrapper_without_weak_references_is_ended_by_its_close():
    """It cannot be watched, only hooked."""

    class Odd:
        __slots__ = ("close", "file")

        def __init__(self, file):
            self.file = file
            self.close = file.close

        def __iter__(self):
            return iter(self.file)

    gate = Gate(1)
    response = begin(Guard(download(io.BytesIO(b"x")), gate), **{"wsgi.file_wrapper": Odd})
    assert gate.inflight == 1
    assert response.read() == b"x"
    assert gate.inflight == 0


def test_a_wrapper_without_a_close_gets_one():
    """Servers call it if it is there."""

    class Bare:
        def __init__(self, file):
            self.file = file

        def __iter__(self):
            return iter(self.file)

    gate = Gate(1)
    response = begin(Guard(download(io.BytesIO(b"x")), gate), **{"wsgi.file_wrapper": Bare})
    assert gate.inflight == 1
    assert response.read() == b"x"
    assert gate.inflight == 0


def test_a_wrapper_that_is_a_function_makes_ordinary_bodies():
    """Whatever it returns is then not recognized by class."""
    gate = Gate(1)
    response = begin(Guard(download(io.BytesIO(b"x")), gate), **{"wsgi.file_wrapper": iter})
    assert gate.inflight == 1
    assert response.read() == b"x"
    assert gate.inflight == 0

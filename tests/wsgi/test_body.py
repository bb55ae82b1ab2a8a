"""When a WSGI response is over, for every kind of body."""

from __future__ import annotations

import gc
import io
import logging
import threading
import weakref
from wsgiref.util import FileWrapper

import pytest
from waitress.buffers import ReadOnlyFileBasedBuffer

from resilience_mw.core import Gate
from resilience_mw.wsgi import Guard

from .harness import Response, aside, begin, call, environ


class Iterable:
    """A body of the app's own class."""

    def __init__(self, chunks=(b"a", b"b")) -> None:
        self.chunks = list(chunks)
        self.closed = 0

    def __iter__(self):
        return iter(self.chunks)

    def close(self) -> None:
        self.closed += 1


class Sized(Iterable):
    """One that knows how long it is."""

    def __len__(self) -> int:
        return len(self.chunks)


class Sequence(list[bytes]):
    """A list with a close of its own."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


def answering(body):
    """Return an app that returns ``body``."""

    def app(environ, start_response):
        start_response("200 OK", [])
        return body

    return app


def generate():
    """Return a generator that was not begun."""
    yield b"a"
    yield b"b"


BODIES = {
    "list": lambda: [b"a", b"b"],
    "tuple": lambda: (b"a", b"b"),
    "list of one": lambda: [b"ab"],
    "empty": list,
    "generator": generate,
    "iterator": lambda: iter([b"a", b"b"]),
    "iterable": Iterable,
    "sized": Sized,
    "list subclass": lambda: Sequence([b"a", b"b"]),
    "file": lambda: io.BytesIO(b"ab"),
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("closes", [1, 2, 5])
def test_every_kind_of_body_holds_the_slot_until_it_is_closed(kind, closes):
    """To the last byte and the first close; more closes give nothing back."""
    gate = Gate(2)
    guard = Guard(answering(BODIES[kind]()), gate)
    other = begin(Guard(answering(()), gate))
    response = begin(guard)
    assert b"".join(response.body) == (b"" if kind == "empty" else b"ab")
    assert gate.inflight == 2
    for _ in range(closes):
        response.body.close()
    assert gate.inflight == 1
    other.body.close()
    assert (gate.inflight, gate.admitted) == (0, 2)


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("iterated", [True, False])
def test_a_body_that_is_dropped_gives_its_slot_back(kind, iterated):
    """A server may forget to close, or die doing something else."""
    gate = Gate(1)
    response = begin(Guard(answering(BODIES[kind]()), gate))
    if iterated:
        list(response.body)
    assert gate.inflight == 1
    response.body = None
    gc.collect()
    assert gate.inflight == 0


@pytest.mark.parametrize("kind", [Iterable, Sized, lambda: Sequence([b"a", b"b"])])
def test_the_apps_own_close_is_called_once(kind):
    """Also when the server calls ours twice."""
    body = kind()
    response = begin(Guard(answering(body), Gate(1)))
    response.body.close()
    response.body.close()
    assert body.closed == 1


def test_a_close_that_raises_gives_the_slot_back():
    """The server sees the error; the slot is free."""

    class Broken(Iterable):
        def close(self):
            raise OSError("broken")

    gate = Gate(1)
    response = begin(Guard(answering(Broken()), gate))
    with pytest.raises(OSError, match="broken"):
        response.body.close()
    assert gate.inflight == 0


@pytest.mark.parametrize("kind", ["list", "tuple", "list of one", "empty", "sized"])
@pytest.mark.parametrize("nested", [False, True])
def test_the_length_of_a_body_is_not_hidden(kind, nested):
    """Servers take Content-Length from a body of one chunk."""
    body = BODIES[kind]()
    app = Guard(answering(body), Gate(1))
    if nested:
        app = Guard(aside(app), Gate(1))
    response = begin(app)
    assert len(response.body) == len(body)
    assert list(response.body) == list(body)
    response.body.close()


@pytest.mark.parametrize("kind", ["generator", "iterable", "iterator"])
def test_a_body_of_unknown_length_has_none(kind):
    """Nothing is made up."""
    response = begin(Guard(answering(BODIES[kind]()), Gate(1)))
    assert not hasattr(response.body, "__len__")
    response.body.close()


def test_a_generator_app_runs_when_it_is_iterated():
    """Also its start_response, and its errors."""
    gate = Gate(1)
    steps = []

    def app(environ, start_response):
        steps.append("begun")
        start_response("200 OK", [])
        yield b"a"
        raise ValueError("late")

    response = begin(Guard(app, gate))
    assert (steps, response.starts, gate.inflight) == ([], [], 1)
    with pytest.raises(ValueError, match="late"):
        response.read()
    assert (steps, response.status, gate.inflight) == (["begun"], 200, 0)


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_an_app_that_raises_gives_its_slot_back(error):
    """Whatever it raises."""
    gate = Gate(1)

    def app(environ, start_response):
        raise error

    with pytest.raises(error):
        begin(Guard(app, gate))
    assert gate.inflight == 0


def test_an_app_that_returns_nonsense_gives_its_slot_back():
    """The server complains as it would without us."""
    gate = Gate(1)
    with pytest.raises(TypeError):
        begin(Guard(answering(None), gate)).read()
    assert gate.inflight == 0


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


@pytest.mark.parametrize("kind", ["list", "generator"])
def test_a_finished_request_is_freed_at_once(kind):
    """Without the cyclic collector: it may hold a socket, and a large upload."""
    guard = Guard(answering(BODIES[kind]()), Gate(1))
    gc.collect()
    gc.disable()
    try:
        upload = io.BytesIO(b"x")
        token = weakref.ref(upload)
        response = begin(guard, **{"wsgi.input": upload})
        del upload
        response.read()
        response.body = None
        assert token() is None
    finally:
        gc.enable()


def test_a_body_that_dies_in_a_locked_section_does_not_deadlock(caplog):
    """The garbage collector may close it while its thread holds the lock."""
    caplog.set_level(logging.ERROR)
    gate = Gate(2)
    guard = Guard(answering(generate()), gate)

    class Middleware:
        """Keeps its body in a cycle, and closes it when it is collected."""

        def __init__(self, body):
            self.body, self.me = body, self

        def __del__(self):
            self.body.close()

    Middleware(begin(guard).body)
    done = threading.Event()

    def collect():
        with guard._section:
            gc.collect()
            assert gate.inflight == 1  # not yet: somebody holds the lock
        done.set()

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    assert done.wait(10.0), "deadlock"
    thread.join()
    assert gate.inflight == 0
    assert call(guard)[0] == 200


def test_the_environ_is_handed_back_as_it_was():
    """A server that reuses it, or a middleware further out, finds nothing of ours."""
    guard = Guard(answering([b"x"]), Gate(1))
    facts = environ()
    before = dict(facts)
    body = guard(facts, Response().start)
    getattr(body, "close", bool)()
    assert facts == before

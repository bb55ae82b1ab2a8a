"""When a WSGI response is over, for every kind of body."""

from __future__ import annotations

import gc

import pytest

from resilience_mw.core import Gate
from resilience_mw.wsgi import Guard

from .bodies import BODIES, Iterable, Sequence, Sized, answering
from .harness import aside, begin


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

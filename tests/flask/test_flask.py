"""The Flask extension."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest
from flask import Flask, Response, has_app_context, jsonify

import resilience_mw
from resilience_mw import Backpressure, Config, ConfigError, Limit
from resilience_mw.core import GateSnapshot
from resilience_mw.flask import Resilience
from resilience_mw.wsgi import Guard


def make_app(name="shop", **config):
    app = Flask(name)
    app.config.update(config)

    @app.get("/")
    def index():
        return jsonify(remaining=resilience_mw.remaining())

    @app.get("/stream")
    def stream():
        def chunks():
            yield f"{app.extensions['resilience_mw'].snapshot().inflight}\n"

        return Response(chunks())

    @app.get("/fail")
    def fail():
        raise RuntimeError("the view failed")

    return app


def fixed_limit(app):
    """Return the limit of the fixed gate, which has that name."""
    parts = app.extensions["resilience_mw"].snapshot().policies
    gates = [part for part in parts if isinstance(part, GateSnapshot) and part.name == "limit"]
    return gates[0].limit if gates else None


def test_one_line_protects_an_app():
    """Probes answer, views see their deadline, and nothing stays in flight."""
    app = make_app()
    resilience = Resilience(app)
    client = app.test_client()
    assert client.get("/livez").data == b"ok"
    assert 0 < client.get("/").get_json()["remaining"] <= 30
    state = resilience.snapshot(app)
    assert (state.inflight, state.admitted) == (0, 1)
    assert not has_app_context()


def test_one_instance_serves_several_apps():
    """Each app has a guard and options of its own, and the instance keeps no app alive."""
    resilience = Resilience()
    first = make_app("first", RESILIENCE={"limit": {"max_concurrent_requests": 3}})
    second = make_app("second", RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS=5)
    resilience.init_app(first)
    resilience.init_app(second)
    first.test_client().get("/")
    assert (fixed_limit(first), fixed_limit(second)) == (3, 5)
    assert resilience.snapshot(first).admitted == 1
    assert resilience.snapshot(second).admitted == 0
    gone = weakref.ref(second)
    del second
    gc.collect()
    assert gone() is None


def test_an_app_is_wrapped_once():
    """A second time is an error that names the app."""
    app = make_app()
    resilience = Resilience(app)
    wrapped = app.wsgi_app
    with pytest.raises(RuntimeError, match="initialized twice for the app 'shop'"):
        resilience.init_app(app)
    with pytest.raises(RuntimeError, match="initialized twice"):
        Resilience(app)
    assert app.wsgi_app is wrapped
    assert isinstance(wrapped, Guard)


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        ({}, None),
        ({"RESILIENCE": None}, None),
        ({"RESILIENCE": {"limit": {"max_concurrent_requests": 3}}}, 3),
        ({"RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS": 4}, 4),
        ({"RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS": " 4"}, 4),
        (
            {
                "RESILIENCE": {"limit": {"max_concurrent_requests": 3, "exempt": ["/static/"]}},
                "RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS": 4,
            },
            4,
        ),
    ],
)
def test_the_app_configuration(config, limit):
    """A mapping, single keys, text where a number is meant; single keys win."""
    app = make_app(**config)
    Resilience(app)
    assert fixed_limit(app) == limit


def test_precedence(monkeypatch):
    """Argument before environment before app configuration."""
    monkeypatch.setenv("RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS", "7")
    given = Config(limit=Limit(max_concurrent_requests=9))
    other = Config(limit=Limit(max_concurrent_requests=11))
    apps = [make_app(RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS=5) for _ in range(3)]
    Resilience(apps[0])
    Resilience(apps[1], config=given)
    Resilience(config=given).init_app(apps[2], config=other)
    assert [fixed_limit(app) for app in apps] == [7, 9, 11]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"RESILIENCE": {"limit": {"max_concurrent_requests": -1}}},
            "RESILIENCE: limit.max_concurrent_requests must be >= 0, got -1",
        ),
        (
            {"RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS": -1},
            "RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS: limit.max_concurrent_requests "
            "must be >= 0, got -1",
        ),
        (
            {"RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS": "many"},
            "RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS: limit.max_concurrent_requests "
            "must be an integer, got 'many'",
        ),
        (
            {"RESILIENCE_LIMIT_MAX_REQUESTS": 5},
            "unknown configuration key RESILIENCE_LIMIT_MAX_REQUESTS; "
            "did you mean RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS?",
        ),
        (
            {"RESILIENCE": 5, "RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS": 5},
            "RESILIENCE: the configuration must be a mapping of sections, got 5",
        ),
        (
            {"RESILIENCE": {"limit": 5}, "RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS": 5},
            "RESILIENCE: limit must be a mapping of options, got 5",
        ),
    ],
)
def test_a_wrong_configuration_is_named_in_one_line(config, message):
    """The option, the rule and the value, as they were spelled; the app stays as it was."""
    app = make_app(**config)
    before = app.wsgi_app
    with pytest.raises(ConfigError) as error:
        Resilience(app)
    assert str(error.value) == message
    assert app.wsgi_app == before
    assert "resilience_mw" not in app.extensions


def test_the_state_of_the_current_app():
    """Inside a request or an app context no app has to be named."""
    app = make_app()
    resilience = Resilience(app)
    with app.app_context():
        assert resilience.snapshot().inflight == 0
        resilience.drain()
    assert app.test_client().get("/readyz").status_code == 503
    assert app.test_client().get("/").status_code == 200


def test_an_app_that_is_not_protected_has_no_state():
    """The error names the app, or says that there is none."""
    resilience = Resilience()
    with pytest.raises(RuntimeError, match="not initialized for the app 'shop'"):
        resilience.snapshot(make_app())
    with pytest.raises(RuntimeError, match="not initialized for the app 'shop'"):
        resilience.drain(make_app())
    with pytest.raises(RuntimeError, match="application context"):
        resilience.snapshot()


def test_a_stream_holds_its_slot_until_its_last_byte():
    """Flask closes the response after it has been sent."""
    app = make_app()
    resilience = Resilience(app)
    with app.test_client().get("/stream") as response:
        assert response.data == b"1\n"
    assert resilience.snapshot(app).inflight == 0


def test_the_slot_of_a_failing_view_is_given_back():
    """Whether the error becomes a page or goes through."""
    app = make_app()
    resilience = Resilience(app)
    with app.test_client().get("/fail") as response:
        assert response.status_code == 500
    app.testing = True
    with pytest.raises(RuntimeError, match="the view failed"):
        app.test_client().get("/fail")
    assert resilience.snapshot(app).inflight == 0


def test_a_full_app_refuses():
    """503 in a thread that finds the only slot taken."""
    app = make_app()
    entered, go_on = threading.Event(), threading.Event()

    @app.get("/hold")
    def hold():
        entered.set()
        go_on.wait(20)
        return "held"

    limit = Config(limit=Limit(max_concurrent_requests=1), backpressure=Backpressure(enabled=False))
    resilience = Resilience(app, config=limit)
    held = threading.Thread(target=lambda: app.test_client().get("/hold"))
    held.start()
    entered.wait(20)
    refused = app.test_client().get("/")
    go_on.set()
    held.join(20)
    assert (refused.status_code, refused.text) == (503, "Service Busy")
    assert resilience.snapshot(app).refused == {"limit": 1}
    deadline = time.monotonic() + 20
    while resilience.snapshot(app).inflight and time.monotonic() < deadline:
        time.sleep(0.005)
    assert app.test_client().get("/").status_code == 200


def test_protect_reads_the_configuration_of_a_flask_app():
    """Whoever wraps the app itself is not left without what is configured in it."""
    app = make_app(RESILIENCE={"limit": {"max_concurrent_requests": 7}})
    parts = resilience_mw.protect(app).snapshot().policies
    assert [part.limit for part in parts if getattr(part, "name", "") == "limit"] == [7]

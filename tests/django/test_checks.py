"""`manage.py check`, once for each id."""

from __future__ import annotations

import re

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.http import HttpResponse
from django.urls import path

from resilience_mw.django import checks

OURS = "resilience_mw.django.ResilienceMiddleware"
SECURITY = "django.middleware.security.SecurityMiddleware"
IDS = [f"resilience_mw.{number}" for number in ("E001", "E002", "E003")]
IDS += [f"resilience_mw.W00{number}" for number in range(1, 7)]


def found(*, deploy=False):
    """Run our checks and return (number, text) of each message."""
    messages = run_checks(tags=["resilience_mw"], include_deployment_checks=deploy)
    assert all(message.hint for message in messages)
    return [(str(message.id).removeprefix("resilience_mw."), str(message)) for message in messages]


def numbers(*, deploy=False):
    return [number for number, _ in found(deploy=deploy)]


def test_a_sound_project_has_nothing_to_say():
    """The settings of these tests are in order, even for deployment."""
    assert found() == []
    assert found(deploy=True) == []


def test_manage_py_check_fails_on_an_error(configure):
    """The checks are registered by the app in INSTALLED_APPS."""
    configure(RESILIENCE={"limit": {"max_concurrent_requests": -1}})
    with pytest.raises(SystemCheckError, match=r"resilience_mw\.E001"):
        call_command("check")


@pytest.mark.parametrize("id", IDS)
def test_every_id_is_documented(id):
    """The module's docstring says what each finds and, on a line of its own, what to do."""
    assert checks.__doc__ is not None
    entries = [entry for entry in checks.__doc__.split("\n- ") if entry.startswith(f"``{id}``")]
    assert len(entries) == 1
    assert re.search(r"\n  (Give|Use|Write|Move|Set|Remove|Lower) ", entries[0])


def test_no_other_id_exists():
    """What the code can say is what the table has."""
    assert checks.__file__ is not None
    with open(checks.__file__) as source:
        code = source.read()
    used = set(re.findall(r"\b[EW]\d{3}\b", code))
    assert used == {id.removeprefix("resilience_mw.") for id in IDS}


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"limit": {"max_concurrent_requests": -1}}, "must be >= 0, got -1"),
        ({"limit": {"max_concurrent_requests": "many"}}, "must be an integer, got 'many'"),
        ({"limit": 5}, "limit must be a mapping of options, got 5"),
        ([], "must be a mapping of sections, got []"),
        ({"health": {"live_path": "/x", "ready_path": "/x"}}, "must differ from health.live_path"),
        ({"health": {"checks": {"db": "no_module:ping"}}}, "health.checks db: a check must be"),
        ({"health": {"forward_path": "/x"}}, "needs one of the health.checks"),
    ],
)
def test_e001_an_invalid_option(configure, setting, text):
    """The text is that of the ConfigError."""
    configure(RESILIENCE=setting)
    [(number, message)] = found()
    assert number == "E001"
    assert text in message


def test_e001_an_invalid_variable(monkeypatch):
    """The environment counts as well."""
    monkeypatch.setenv("RESILIENCE_DEADLINE_TIMEOUT", "soon")
    [(number, message)] = found()
    assert number == "E001"
    assert "RESILIENCE_DEADLINE_TIMEOUT: deadline.timeout must be a number" in message


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ({"limit": {"max_requests": 5}}, "Did you mean limit.max_concurrent_requests?"),
        ({"limits": {"max_concurrent_requests": 5}}, "Did you mean limit"),
    ],
)
def test_e002_an_unknown_option(configure, setting, hint):
    """The hint has the nearest name."""
    configure(RESILIENCE=setting)
    [(number, message)] = found()
    assert number == "E002"
    assert hint in message


def test_e003_a_name_of_the_node_system(configure):
    """Who comes from there is told what it is called here."""
    configure(RESILIENCE={"limit": {"maxConcurrentRequests": 5}})
    [(number, message)] = found()
    assert number == "E003"
    assert "Did you mean limit.max_concurrent_requests?" in message


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (
            "RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS",
            'Write RESILIENCE = {"limit": {"max_concurrent_requests": ...}}.',
        ),
        ("RESILIENCE_ENABLED", "Remove RESILIENCE_ENABLED, which nobody reads."),
    ],
)
def test_e003_a_setting_of_its_own(configure, name, hint):
    """The spelling of the environment is no setting; it would be ignored in silence."""
    configure(**{name: 5})
    [(number, message)] = found()
    assert number == "E003"
    assert hint in message


def test_w001_not_the_first(configure):
    """Only for deployment, and the position is named."""
    configure(MIDDLEWARE=[SECURITY, "no.such.middleware", OURS])
    assert found() == []
    [(number, message)] = found(deploy=True)
    assert number == "W001"
    assert "number 3 in MIDDLEWARE" in message


def test_w002_no_limit(configure):
    """A deadline alone does not protect from overload."""
    configure(RESILIENCE={"backpressure": {"enabled": False}})
    assert found() == []
    assert numbers(deploy=True) == ["W002"]
    configure(MIDDLEWARE=[])
    assert numbers(deploy=True) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"WSGI_APPLICATION": "tests.django.project.guarded.wsgi_application"},
        {
            "WSGI_APPLICATION": None,
            "ASGI_APPLICATION": "tests.django.project.guarded.asgi_application",
        },
        {"WSGI_APPLICATION": "tests.django.project.pair.wsgi.application"},
    ],
    ids=["wsgi", "asgi", "beside wsgi.py"],
)
def test_w003_protected_twice(configure, settings):
    """Found under another middleware, and where `startproject` puts asgi.py."""
    configure(**settings)
    assert numbers() == ["W003"]
    configure(MIDDLEWARE=[])
    assert numbers() == []


@pytest.mark.parametrize(
    "application",
    [
        None,
        "tests.django.project.broken.application",
        "tests.django.project.missing.application",
        "no.such.package.wsgi.application",
        "tests.django.project.wsgi.no_such_application",
        "application",
        "tests.django.project.guarded.cyclic",
    ],
)
def test_w003_is_silent_about_what_it_cannot_follow(configure, application):
    """The server will say what is wrong with an application that cannot be imported."""
    configure(WSGI_APPLICATION=application)
    assert numbers() == []


class Probes:
    """A URLconf with a probe of its own."""

    urlpatterns = (path("livez", lambda request: HttpResponse("alive")),)


def test_w004_a_probe_in_the_urlconf(configure):
    """It would never be called."""
    configure(ROOT_URLCONF=Probes)
    [(number, message)] = found()
    assert number == "W004"
    assert "/livez" in message


def test_w004_a_probe_that_is_redirected(configure):
    """Kubernetes asks over plain HTTP, and would be sent to HTTPS."""
    configure(
        MIDDLEWARE=[SECURITY, OURS],
        SECURE_SSL_REDIRECT=True,
        SECURE_REDIRECT_EXEMPT=[r"^livez$", r"^startupz$"],
    )
    [(number, message)] = found()
    assert number == "W004"
    assert 'add r"^readyz$" to SECURE_REDIRECT_EXEMPT' in message
    configure(MIDDLEWARE=[OURS, SECURITY])
    assert numbers() == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--threads 8", ["W005"]),
        ("-w 4 --threads=7 --bind :8000", ["W005"]),
        ("-k gthread --threads 9", []),
        ("-k asgi --threads 8", []),
        ("--threads", []),
        ("--threads many", []),
        ("'", []),
        ("", []),
    ],
)
def test_w005_a_limit_that_cannot_act(configure, monkeypatch, arguments, expected):
    """A middleware never sees more requests than Gunicorn has threads."""
    configure(RESILIENCE={"limit": {"max_concurrent_requests": 8}})
    monkeypatch.setenv("GUNICORN_CMD_ARGS", arguments)
    assert numbers() == []
    assert numbers(deploy=True) == expected


@pytest.mark.parametrize(
    ("arguments", "timeout", "expected"),
    [
        ("--timeout 30", 30, ["W006"]),
        ("-t 10", 30, ["W006"]),
        ("-t 31", 30, []),
        ("-t 0", 30, []),
        ("-t 30", None, []),
        ("", 30, []),
    ],
)
def test_w006_a_worker_that_dies_before_the_deadline(
    configure, monkeypatch, arguments, timeout, expected
):
    """Gunicorn would kill the worker, and all it serves, before we answer 504."""
    configure(RESILIENCE={"deadline": {"timeout": timeout}})
    monkeypatch.setenv("GUNICORN_CMD_ARGS", arguments)
    assert numbers(deploy=True) == expected


def test_warnings_wait_for_valid_options(configure):
    """With broken options there is nothing to compare."""
    configure(MIDDLEWARE=[SECURITY, OURS], RESILIENCE={"limit": {"max_concurrent_requests": None}})
    assert numbers(deploy=True) == ["E001"]

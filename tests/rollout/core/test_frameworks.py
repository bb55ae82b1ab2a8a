"""What a fallback can make good where a framework answers exceptions by itself."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import flask
import pytest
from fastapi import FastAPI

from benchmarks.process import ROOT
from resilience_mw import RolloutRule

from .drivers import ASGI, DRIVERS, WSGI, rule_of

RULES = [RolloutRule("r", path="/a", percent=100)]

DJANGO = """
import sys
import django
from django.conf import settings

def view(request):
    raise LookupError("x")

class Urls:
    from django.urls import path
    urlpatterns = [path("a", view)]

settings.configure(
    ALLOWED_HOSTS=["*"], ROOT_URLCONF=Urls, LOGGING_CONFIG=None,
    DEBUG_PROPAGATE_EXCEPTIONS=sys.argv[1] == "True",
)
django.setup()
from django.core.handlers.wsgi import WSGIHandler
from tests.rollout.core.drivers import WSGI
from tests.rollout.core.test_frameworks import falling

print(WSGI.get(falling(WSGI, WSGIHandler()), "/a").status)
"""


def falling(driver: Any, new: Any) -> Any:
    return driver.Middleware(driver.app("old"), new=new, rules=RULES, fallback=True)


@pytest.mark.parametrize(("propagates", "status"), [(None, 500), (True, 200)])
def test_flask_answers_unless_it_is_told_not_to(propagates: bool | None, status: int):
    """A 500 of its own is an answer; an exception that it passes on is none."""
    shop = flask.Flask("shop")
    shop.config["PROPAGATE_EXCEPTIONS"] = propagates
    shop.logger.disabled = True

    @shop.get("/a")
    def fails() -> str:
        raise LookupError("x")

    app = falling(WSGI, shop)
    assert WSGI.get(app, "/a").status == status
    new = rule_of(app).new
    assert (new.errors, new.fallbacks) == (1, int(status == 200))


def test_fastapi_always_answers():
    """It raises as well, but after its 500 has begun: the old app may not answer any more."""
    shop = FastAPI()

    @shop.get("/a")
    async def fails() -> None:
        raise LookupError("x")

    app = falling(ASGI, shop)
    with pytest.raises(LookupError):
        ASGI.get(app, "/a")
    new = rule_of(app).new
    assert (new.errors, new.fallbacks) == (1, 0)


@pytest.mark.parametrize(("propagates", "status"), [(False, 500), (True, 200)])
def test_django_answers_unless_it_is_told_not_to(propagates: bool, status: int):
    """As Flask does."""
    ran = subprocess.run(
        [sys.executable, "-c", DJANGO, str(propagates)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stdout == f"{status}\n", ran.stderr


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_500_that_is_raised_as_well_is_one_error(driver: Any):
    """To the guard, too: one request says one thing."""
    app = driver.Middleware(driver.app("old"), new=raising_after(driver, 500), rules=RULES)
    for _ in range(3):
        with pytest.raises(LookupError):
            driver.get(app, "/a")
    new = rule_of(app).new
    assert (new.requests, new.errors) == (3, 3)
    app = driver.Middleware(driver.app("old"), new=raising_after(driver, 200), rules=RULES)
    with pytest.raises(LookupError):
        driver.get(app, "/a")
    assert rule_of(app).new.errors == 1


def raising_after(driver: Any, status: int) -> Any:
    """An app that answers and raises, as Starlette does."""
    answers = driver.app("x", status)
    if driver is WSGI:

        def app(environ: Any, start_response: Any) -> Any:
            answers(environ, start_response)
            raise LookupError("x")

        return app

    async def asgi_app(scope: Any, receive: Any, send: Any) -> None:
        await answers(scope, receive, send)
        raise LookupError("x")

    return asgi_app

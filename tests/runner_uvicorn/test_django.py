"""Django's settings count for the runner, too, and its middleware is a guard like any other."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOOK = """
import django
from django.conf import settings

settings.configure(MIDDLEWARE={middleware!r}, RESILIENCE={options!r}, SECRET_KEY="x")
django.setup()
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

from resilience_mw import Config, Limit
from resilience_mw.runner.wrap import wrap

wrapped = wrap({make}(), Config(limit=Limit(max_concurrent_requests=5)))
(guard,) = wrapped.guards()
wrapped.drain()
limits = [part.limit for part in guard.snapshot().policies if getattr(part, "name", "") == "limit"]
print(wrapped.added, type(guard).__module__, limits, wrapped.config.runner.drain_delay)
"""

OURS = ["resilience_mw.django.ResilienceMiddleware"]
OPTIONS = {"runner": {"drain_delay": 7}, "limit": {"max_concurrent_requests": 9}}


def look(make: str, middleware: list[str]) -> list[str]:
    """Wrap a Django app in a process of its own, and return what became of it."""
    code = LOOK.format(make=make, middleware=middleware, options=OPTIONS)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("protocol", ["asgi", "wsgi"])
def test_a_project_without_our_middleware(protocol):
    """It is wrapped; the settings count, below what was given."""
    added, guard, limit, delay = look(f"get_{protocol}_application", [])
    assert (added, guard, limit, delay) == ("True", f"resilience_mw.{protocol}.guard", "[5]", "7.0")


@pytest.mark.parametrize("protocol", ["asgi", "wsgi"])
@pytest.mark.parametrize("before", [[], ["django.middleware.common.CommonMiddleware"]])
def test_a_project_with_our_middleware(protocol, before):
    """It is not wrapped again, and its middleware is found, wherever it stands."""
    added, guard, limit, delay = look(f"get_{protocol}_application", [*before, *OURS])
    assert added == "False"
    assert guard == "resilience_mw.django.middleware"
    assert limit == "[9]"
    assert delay == "7.0"

"""Applications that are protected already, one of them under a middleware of somebody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

from resilience_mw import protect


class Outermost:
    """Somebody's WSGI middleware."""

    def __init__(self, application: Callable[..., Any]) -> None:
        self.application = application

    def __call__(self, environ: Any, start_response: Any) -> Any:
        return self.application(environ, start_response)


wsgi_application = Outermost(protect(get_wsgi_application()))
asgi_application = protect(get_asgi_application())

cyclic = Outermost(get_wsgi_application())
cyclic.application = cyclic

"""Protect a Django project from within: ``MIDDLEWARE``, one setting, system checks.

    INSTALLED_APPS += ["resilience_mw.django"]                            # system checks
    MIDDLEWARE = ["resilience_mw.django.ResilienceMiddleware", ...]       # first of all
    RESILIENCE = {"limit": {"max_concurrent_requests": 100}}

``MIDDLEWARE`` is the easy place. The better one is around the application, in ``asgi.py`` or
``wsgi.py``, with the same options:

    from resilience_mw import protect
    from resilience_mw.django import options

    application = protect(get_asgi_application(), options())

Under ASGI, Django enters its middlewares only after the whole body has been read. Only the outer
place can refuse before an upload, answer 408 to a body that never ends, and know how long a
request has waited for the event loop; and it refuses at a small part of the cost. Where both are
there, `ResilienceMiddleware` lets requests pass, and check W003 says so.
"""

from __future__ import annotations

from .conf import options
from .guard import Guard
from .middleware import ResilienceMiddleware, drain, snapshot

__all__ = ["Guard", "ResilienceMiddleware", "drain", "options", "snapshot"]

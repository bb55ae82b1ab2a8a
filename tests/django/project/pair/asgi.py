"""Protected under ASGI, beside `wsgi.py` as `startproject` puts it."""

from __future__ import annotations

from django.core.asgi import get_asgi_application

from resilience_mw import protect
from resilience_mw.django import options

application = protect(get_asgi_application(), options())

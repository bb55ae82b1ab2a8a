"""The ASGI application, protected from outside: before Django reads the body of a request."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

from resilience_mw import protect
from resilience_mw.django import options

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

application = protect(get_asgi_application(), options())

"""Apps to be found by name."""

from __future__ import annotations

from .drivers import ASGI, WSGI

asgi_app = ASGI.app("named")
wsgi_app = WSGI.app("named")

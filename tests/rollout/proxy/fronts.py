"""Servers that have a proxy to ``UPSTREAM`` in them."""

from __future__ import annotations

import os
from typing import Any

from resilience_mw.rollout.proxy.asgi import proxy as asgi_proxy
from resilience_mw.rollout.proxy.wsgi import proxy as wsgi_proxy

UPSTREAM = os.environ["UPSTREAM"]

asgi = asgi_proxy(UPSTREAM)
wsgi = wsgi_proxy(UPSTREAM)


def application(environ: dict[str, Any], start_response: Any) -> Any:
    """Be found by servers that look for a function."""
    return wsgi(environ, start_response)

"""A stack that runs in a process of its own, as an app of this one: a reverse proxy.

`resilience_mw.rollout.proxy.asgi.proxy(url)` and `resilience_mw.rollout.proxy.wsgi.proxy(url)` need
the extra `proxy`; this module does not.
"""

from __future__ import annotations

from .errors import UpstreamLost, UpstreamUnreachable

__all__ = ["UpstreamLost", "UpstreamUnreachable"]

"""A WSGI app without a framework.

Run it, and look:

    gunicorn --worker-class gthread --threads 8 wsgi_plain:app
    curl -i http://127.0.0.1:8000/ http://127.0.0.1:8000/readyz
"""

from __future__ import annotations

import time
from typing import Any

from resilience_mw import Config, Deadline, Limit, protect


def hello(environ: Any, start_response: Any) -> list[bytes]:
    """Wait for a backend, then answer."""
    time.sleep(0.05)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "6")])
    return [b"hello\n"]


# The limit is below the number of threads: a middleware sees only requests that have one.
app = protect(
    hello,
    Config(limit=Limit(max_concurrent_requests=4), deadline=Deadline(timeout=10)),
)

"""A WSGI app that can be kept as busy as a test wants."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from resilience_mw import protect


def threads(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Hold a thread of the server: asleep, or computing."""
    asked = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
    seconds = float(asked.get("seconds", 0))
    if "compute" in asked:
        spin(seconds)
    else:
        time.sleep(seconds)
    body = str(os.getpid()).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def spin(seconds: float) -> None:
    """Compute without ever letting go of the interpreter by oneself."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


wsgi = protect(threads, interface="wsgi")

"""The same as a WSGI app."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from typing import Any

from resilience_mw import protect
from tests.priority.configs import CONFIGS


def respond(environ: Any, start_response: Any) -> list[bytes]:
    """Block a thread (`/block`), for longer (`/wait`), or tell the state (`/snapshot`)."""
    body = b"done"
    match environ["PATH_INFO"]:
        case "/block":
            time.sleep(0.12)
        case "/wait":
            time.sleep(0.4)
        case "/snapshot":
            body = json.dumps(dataclasses.asdict(app.snapshot())).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


app = protect(respond, CONFIGS[os.environ["CONFIG"]], interface="wsgi")

"""The WSGI app with two paths more, for the measurements around the load itself."""

from __future__ import annotations

import time

from benchmarks.apps.protection import protected
from benchmarks.apps.wsgi import flask
from benchmarks.overload.pause import HOLD_SECONDS, pause


@flask.get("/hold")
def hold() -> str:
    """Keep a slot while the cost of a refusal is measured."""
    time.sleep(HOLD_SECONDS)
    return "held"


@flask.get("/pause")
def stop_everything() -> str:
    """Stop the whole interpreter for a moment."""
    pause()
    return "back"


app = protected(flask)

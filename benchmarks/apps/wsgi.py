"""A Flask app: each request owns a thread, and those without one wait outside the app."""

from __future__ import annotations

import time

from flask import Flask

from benchmarks.apps.protection import protected
from benchmarks.apps.work import cpu

flask = Flask(__name__)


@flask.get("/hello")
def hello() -> str:
    """Next to no work: what a probe asks for."""
    return "hello"


@flask.get("/compute")
def compute() -> str:
    """10 ms of CPU."""
    cpu(10)
    return "done"


@flask.get("/io")
def io() -> str:
    """2 ms, a backend that takes 50 ms, 2 ms."""
    cpu(2)
    time.sleep(0.05)
    cpu(2)
    return "done"


app = protected(flask)

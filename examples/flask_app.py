"""Flask on Gunicorn with threads.

Run it, and look:

    gunicorn --worker-class gthread --threads 8 flask_app:app
    curl -i http://127.0.0.1:8000/ http://127.0.0.1:8000/readyz
"""

from __future__ import annotations

import time

from flask import Flask, Response, jsonify

import resilience_mw
from resilience_mw.flask import Resilience

app = Flask(__name__)

# Below the number of threads: a middleware sees only requests that have one. The threads above it
# are left to answer probes, and to refuse.
app.config["RESILIENCE"] = {
    "limit": {"max_concurrent_requests": 4},
    "deadline": {"timeout": 10},
}
resilience = Resilience(app)


@app.get("/")
def index() -> str:
    """Wait for a backend, as most views do."""
    time.sleep(0.05)
    return "hello"


@app.get("/report")
def report() -> Response:
    """Give the deadline on: use what is left as the timeout of your own calls."""
    return jsonify(seconds_left=resilience_mw.remaining())


@app.get("/load")
def load() -> Response:
    """Show what the middleware sees; keep it off the public network."""
    return jsonify(resilience.snapshot())

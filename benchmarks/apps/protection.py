"""Which protection an app gets is chosen outside it, so that peers run the very same code."""

from __future__ import annotations

import os
from typing import Any

VARIABLE = "PROTECT"


def protected(app: Any) -> Any:
    """Wrap the app as the environment variable `PROTECT` says.

    `none` (or unset): not at all. `default`: `protect(app)`. `aimd` or `adaptive`: that law.
    `limit:N`: at most N at a time and no adaptive limit.

    Raises:
        ValueError: the variable says something else.
    """
    choice = os.environ.get(VARIABLE, "none")
    if choice == "none":
        return app
    # Only here: an unprotected run must not load what it is compared with.
    from resilience_mw import Backpressure, Config, Limit, protect

    name, _, number = choice.partition(":")
    if choice == "default":
        return protect(app)
    if choice == "aimd":
        return protect(app, Config(backpressure=Backpressure(law="aimd")))
    if choice == "adaptive":
        return protect(app, Config(backpressure=Backpressure(law="adaptive")))
    if name == "limit" and number.isdigit():
        config = Config(
            limit=Limit(max_concurrent_requests=int(number)),
            backpressure=Backpressure(enabled=False),
        )
        return protect(app, config)
    raise ValueError(f"{VARIABLE} must be none, default, aimd, adaptive or limit:N, got {choice!r}")

"""Every option of the package, each declared once.

The order of the sections in `Config`, and of the options here, is their order in tables, help and
documentation.
"""

from __future__ import annotations

from resilience_mw.config.options.health import Health
from resilience_mw.config.options.load import Backpressure, Deadline, Limit
from resilience_mw.config.options.runner import Runner

__all__ = ["Backpressure", "Deadline", "Health", "Limit", "Runner"]

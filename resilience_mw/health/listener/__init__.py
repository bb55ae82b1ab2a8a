"""Probes answered while the app is too busy to: a thread and a port of their own.

One listener speaks for all workers of a server on a host. A thread in each worker reports to a
small file how far it is and when its event loop last turned; the one that listens reads it.
"""

from __future__ import annotations

import sys

from ...exceptions import ConfigError

if sys.platform == "win32":
    raise ConfigError("health.port must be 0 (off) on Windows, whose files have no such locks")

from .outofband import OutOfBand

__all__ = ["OutOfBand"]

"""Probes answered while the app is too busy to: a thread and a port of their own.

One listener speaks for all workers of a server on a host. A thread in each worker reports to a
small file how far it is and when its event loop last turned; the one that listens reads it.
"""

from __future__ import annotations

from .outofband import OutOfBand

__all__ = ["OutOfBand"]

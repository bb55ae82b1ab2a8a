"""What the app needs, asked in the background, so that no probe ever waits for an answer."""

from __future__ import annotations

from ..core.snapshot import CheckResult
from .bridge import DjangoHealthCheck
from .check import Check, CheckFailed
from .disk import DiskCheck
from .django import DjangoDatabaseCheck
from .memory import MemoryCheck
from .monitor import Monitor
from .redis import RedisCheck
from .specs import from_spec
from .tcp import TcpCheck
from .upstream import UpstreamCheck

__all__ = [
    "Check",
    "CheckFailed",
    "CheckResult",
    "DiskCheck",
    "DjangoDatabaseCheck",
    "DjangoHealthCheck",
    "MemoryCheck",
    "Monitor",
    "RedisCheck",
    "TcpCheck",
    "UpstreamCheck",
    "from_spec",
]

"""What the app needs, asked in the background, so that no probe ever waits for an answer."""

from __future__ import annotations

from .check import Check, CheckFailed
from .specs import from_spec
from .tcp import TcpCheck
from .upstream import UpstreamCheck

__all__ = ["Check", "CheckFailed", "TcpCheck", "UpstreamCheck", "from_spec"]

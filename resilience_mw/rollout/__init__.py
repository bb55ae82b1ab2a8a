"""Moving traffic from one stack to another: the parts with I/O, which the middlewares use."""

from __future__ import annotations

from .testers import sign_tester

__all__ = ["sign_tester"]

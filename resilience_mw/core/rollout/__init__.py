"""Which of two stacks answers a request: rules, shares and counts, without I/O."""

from __future__ import annotations

from .share import Share

__all__ = ["Share"]

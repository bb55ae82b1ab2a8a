"""Laws: samples in, a concurrency limit out. The gate counts; a law only decides how many."""

from __future__ import annotations

from .adaptive import Adaptive
from .aimd import AIMD
from .base import Law, Senses, Window

__all__ = ["AIMD", "Adaptive", "Law", "Senses", "Window"]

"""The commands of `resilience-mw rollout`, one module each."""

from __future__ import annotations

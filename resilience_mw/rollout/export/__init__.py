"""The rules of a roll-out as configuration of the proxy in front, for teams that split there."""

from __future__ import annotations

from .finding import rollout_of
from .haproxy import haproxy
from .nginx import nginx
from .plan import Plan

__all__ = ["Plan", "haproxy", "nginx", "rollout_of"]

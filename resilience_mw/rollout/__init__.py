"""What a roll-out needs of the outside: stores, the way to the new stack, front proxies."""

from __future__ import annotations

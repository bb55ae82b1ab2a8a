"""What checks written as text may name."""

from __future__ import annotations

from resilience_mw.health import Check


def ping() -> bool:
    return True


class Group:
    inner = Check(ping, interval=7)


check = Check(ping, critical=False)
number = 3

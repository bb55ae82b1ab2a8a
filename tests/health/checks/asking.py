"""Ask a check once, as the monitor does, without a monitor."""

from __future__ import annotations

import asyncio
import inspect

from resilience_mw.health import Check, CheckFailed

PASSED = "passed"


async def verdict(check: Check) -> str:
    """Return `PASSED`, or the reason why not; another exception than `CheckFailed` is raised."""
    try:
        if inspect.iscoroutinefunction(check.probe):
            answer = await check.probe()
        else:
            answer = await asyncio.to_thread(check.probe)
    except CheckFailed as failed:
        return failed.reason
    return PASSED if answer is not False else "false"


def ask(check: Check) -> str:
    """Return what `verdict` returns, in an event loop of its own."""
    return asyncio.run(verdict(check))

"""One meter a loop: how busy it is, how many turns it made, when this turn started."""

from __future__ import annotations

import asyncio
import threading
import weakref

from .asyncio_loop import select_meter
from .cpu_loop import CpuMeter
from .meter import LoopMeter, LoopReading, utilization
from .running import running_loop
from .uvloop_loop import uv_meter

__all__ = ["LoopMeter", "LoopReading", "attach", "utilization"]

_meters: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopMeter] = (
    weakref.WeakKeyDictionary()
)
_lock = threading.Lock()


def attach(loop: asyncio.AbstractEventLoop | None = None) -> LoopMeter:
    """Return the meter of the running loop (or of `loop`), installing it at the first call.

    Call it from inside the loop, and `detach` what it returns when done: the last `detach` restores
    the loop. `meter.source` says what it measures with: ``"select"`` (asyncio), ``"uv"`` (uvloop),
    or ``"cpu"``, the fallback for every other loop, Trio included.

    Example:
        >>> async def window():
        ...     meter = attach()
        ...     before = meter.read(time.monotonic())
        ...     await asyncio.sleep(1)
        ...     return utilization(before, meter.read(time.monotonic()))
    """
    loop = running_loop() if loop is None else loop
    if loop is None:
        return _retained(CpuMeter())
    with _lock:
        meter = _meters.get(loop)
        if meter is None or not meter.attached:
            meter = _meters[loop] = uv_meter(loop) or select_meter(loop) or CpuMeter()
        return _retained(meter)


def _retained(meter: LoopMeter) -> LoopMeter:
    meter.retain()
    return meter

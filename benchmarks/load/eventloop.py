"""Run the generator on the fastest loop there is, with as few pauses of its own as possible."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import importlib.util
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

DESCRIPTORS = 65_536


def run(main: Coroutine[Any, Any, T], *, uvloop: bool | None = None) -> T:
    """Run `main` on uvloop where it is installed (`None`), always (`True`) or never (`False`)."""
    if uvloop is None:
        uvloop = importlib.util.find_spec("uvloop") is not None
    factory = importlib.import_module("uvloop").new_event_loop if uvloop else None
    with asyncio.Runner(loop_factory=factory) as runner, _without_pauses():
        return runner.run(main)


@contextlib.contextmanager
def _without_pauses() -> Iterator[None]:
    """Keep the garbage collector out, and allow as many sockets as the system lets us have.

    A run is bounded, so what is not collected meanwhile is bounded too.
    """
    _raise_descriptor_limit()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _raise_descriptor_limit() -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit to raise.
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

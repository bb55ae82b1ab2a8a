"""Enforce deadlines on running ASGI requests.

At the deadline the client is answered at once, later messages of the app are swallowed, and it is
told to end: by a disconnect if it listens for one, else by cancelling its task. The slot stays
taken until the task has really ended: work that goes on in a thread is still load.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from collections.abc import Sequence
from typing import Any

from ..core.deadline import LATE, UNRECEIVED, DeadlinePolicy
from ..core.exchange import Reply
from .exchange import ASGIExchange, send_reply

logger = logging.getLogger("resilience_mw")


class Watch:
    """The running requests of one guard that have a deadline.

    Args:
        policies: the guard's deadline policies; the outermost counts what was enforced.
        running: the requests, kept by the guard.
    """

    def __init__(self, policies: Sequence[DeadlinePolicy], running: set[ASGIExchange]) -> None:
        self._policy = policies[0]
        timeouts = [policy.receive_timeout for policy in policies if policy.receive_timeout]
        self.receive_timeout = min(timeouts, default=0.0)
        """Seconds until a request must have been received; 0 = no limit."""
        self._running = running

    def beat(self, now: float) -> None:
        """Enforce what is due."""
        receive_by = now - (self.receive_timeout or math.inf)
        for exchange in self._running:
            due = exchange.deadline is not None and exchange.deadline <= now
            if exchange.overdue:
                if due:
                    _end(exchange)
            elif exchange.status:
                continue  # a response that has started is never cut
            elif exchange.reader is not None and exchange.arrived <= receive_by:
                # Before the deadline, which may be the same: it is the client who is late.
                self._policy.unreceived += 1
                self._answer(exchange, UNRECEIVED)
                exchange.tell(exchange.reader)
            elif due:
                self._policy.expired += 1
                self._answer(exchange, LATE)
                _end(exchange)

    @staticmethod
    def _answer(exchange: ASGIExchange, reply: Reply) -> None:
        exchange.overdue = True  # from here on the app is muted
        exchange.answering = asyncio.ensure_future(
            send_reply(reply, exchange.scope, exchange.server_send)
        )


async def settle(exchange: ASGIExchange, error: BaseException | None) -> None:
    """End the call of an app that was answered for: swallow what we caused, re-raise the rest."""
    task, exchange.task = exchange.task, None  # nothing of the app is left to cancel
    if isinstance(error, GeneratorExit):
        raise error  # the loop has gone: nothing more can be awaited
    if exchange.answering is not None:
        # The server takes our return as the end of the request: the answer has to be out.
        await asyncio.wait([exchange.answering])
        if not exchange.answering.cancelled() and exchange.answering.exception() is not None:
            logger.debug("the late answer was not sent", exc_info=exchange.answering.exception())
    ours = exchange.cancelled and task is not None and not task.uncancel()
    if isinstance(error, asyncio.CancelledError):
        if not ours:
            raise error
    elif isinstance(error, Exception):
        # An app that was told of a disconnect may well fail; any other failure is its own.
        level = logging.DEBUG if exchange.told else logging.WARNING
        logger.log(level, "the app failed after its request was answered for it", exc_info=error)
    elif error is not None:
        raise error


def _end(exchange: ASGIExchange) -> None:
    """End the app: by a disconnect if it listens for one, else as soon as nothing shields it.

    Who listens, as Django does, runs its views in tasks that only it can cancel: they would go on
    without their request if we cancelled the one that waits for them.
    """
    task = exchange.task
    if task is None or exchange.cancelled:
        return
    if exchange.listener is not None:
        exchange.tell(exchange.listener)
    elif not _shielded(task) and not (exchange.told and exchange.received):
        exchange.cancelled = True
        task.cancel()


def _shielded(task: asyncio.Task[Any]) -> bool:
    """Whether the task is inside a shielded anyio scope, such as a call in its thread pool.

    A native cancellation there would hand the pool's token back while the thread still runs, so
    that timeouts would add threads. Entering an `anyio.CancelScope` for each request would do as
    well, at several microseconds each. Where anyio has changed inside, the answer is yes: then
    the work is left to end by itself.
    """
    anyio_asyncio = sys.modules.get("anyio._backends._asyncio")
    if anyio_asyncio is None:
        return False
    try:
        state = anyio_asyncio._task_states.get(task)
        scope = None if state is None else state.cancel_scope
        while scope is not None:
            if scope.shield:
                return True
            scope = scope._parent_scope
    except AttributeError:  # pragma: no cover - another anyio
        return True
    return False

"""Run Django's asynchronous requests through the ASGI driver.

The middleware chain is made an ASGI app whose only message carries Django's response. It runs in
a task of its own, for it may outlive the answer: a stream lasts until it is closed, and after a
deadline the client has its 504 while a synchronous view still works in its thread. The slot is
taken until the task has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http.response import HttpResponseBase

from ..asgi import Guard
from ..context import current
from ..core.policy import Policy
from ..types import Message, Receive, Scope, Send
from .responses import answer, discard, on_close

KEY = "resilience_mw.django"

GetResponse = Callable[[ASGIRequest], Awaitable[HttpResponseBase]]


class LoopDriver:
    """Holds the ASGI guard of one middleware chain, and its running requests.

    Args:
        policies: what decides, outermost first.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.guard = Guard(_respond, *policies)
        self._working: set[asyncio.Task[None]] = set()

    async def respond(self, request: ASGIRequest, get_response: GetResponse) -> HttpResponseBase:
        """Return the view's response, or ours."""
        loop = asyncio.get_running_loop()
        call = _Call(loop, request, get_response)
        context = copy_context()
        work = loop.create_task(
            self.guard({**request.scope, KEY: call}, call.receive, call.send), context=context
        )
        self._working.add(work)  # a loop alone does not keep its tasks alive
        work.add_done_callback(self._working.discard)
        work.add_done_callback(call.ended)
        try:
            await asyncio.wait([call.answered])
        except asyncio.CancelledError:
            # The client has left. As without us, the view is told and may take its time.
            work.cancel()
            try:
                await asyncio.wait([call.answered])
            except asyncio.CancelledError:
                call.abandoned = True  # by Django, too: whatever the view may still return
                raise
        _adopt(context)
        response = call.take()
        sender = asyncio.current_task()
        if response.streaming and sender is not None:
            # Django does not close a stream that fails while it is sent.
            sender.add_done_callback(call.sent)
        return response


class _Call:
    """One request on its way through the driver."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, request: ASGIRequest, get_response: GetResponse
    ) -> None:
        self.loop = loop
        self.request = request
        self.get_response = get_response
        self.answered: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        """Done when the view's response is a stream and has ended."""
        self.served = False
        """Whether the answer is the view's own."""
        self.abandoned = False
        """Whether nobody waits for an answer any more."""
        self._answer: HttpResponseBase | None = None
        self._start: Message = {}

    async def receive(self) -> Message:
        """Be silent: the body has been read, and Django itself looks out for a disconnect."""
        message: asyncio.Future[Message] = self.loop.create_future()
        return await message

    async def send(self, message: Message) -> None:
        """Take the view's response in one message, or a reply in two."""
        if self.abandoned:
            return
        if KEY in message:
            self._deliver(message[KEY])
            self.served = True
        elif message["type"] == "http.response.start":
            self._start = message
        else:
            headers = [(name.decode(), value.decode()) for name, value in self._start["headers"]]
            self._deliver(answer(self._start["status"], headers, message["body"]))

    def ended(self, work: asyncio.Task[None]) -> None:
        """Pass on how the work ended, if that was without an answer."""
        error = None if work.cancelled() else work.exception()
        if self.answered.done():
            return
        if error is None:
            self.answered.cancel()
        else:
            self.answered.set_exception(error)

    def sent(self, sender: asyncio.Task[Any] | None = None) -> None:
        """Take note that a stream is over."""
        if not self.closed.done():
            self.closed.set_result(None)

    def take(self) -> HttpResponseBase:
        """Return the answer and let go of it, or raise what the work has raised.

        A stream that the project drops has to be collected while we wait for its end.
        """
        self.answered.result()
        response, self._answer = self._answer, None
        return cast("HttpResponseBase", response)

    def _deliver(self, response: HttpResponseBase) -> None:
        self._answer = response
        self.answered.set_result(None)


class _Closer:
    """Ends a stream when Django closes it, in any thread, or drops it without closing."""

    def __init__(self, call: _Call) -> None:
        self._tell = partial(call.loop.call_soon_threadsafe, call.sent)

    def __call__(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the wait with it
            self._tell()

    __del__ = __call__


async def _respond(scope: Scope, receive: Receive, send: Send) -> None:
    """Be the app that the guard guards."""
    call: _Call = scope[KEY]
    try:
        response = await call.get_response(call.request)
    except asyncio.CancelledError:
        await _thread_idle()
        raise
    streaming = response.streaming
    if streaming:
        on_close(response, _Closer(call))
    await send({"type": "http.response.start", "status": response.status_code, KEY: response})
    if not call.served:
        discard(response)
    del response  # it may be collected from here on
    if streaming:
        await call.closed


async def _thread_idle() -> None:
    """Return once the request's thread has nothing to do.

    asgiref gives up on a synchronous view as soon as it is cancelled, but the view works on. All
    that is synchronous in a request shares one thread, so what is queued there now runs last.
    """
    idle = asyncio.ensure_future(sync_to_async(_nothing)())
    while not idle.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([idle])
    idle.exception()  # an executor that has been shut down is idle, too


def _adopt(context: Context) -> None:
    """Take over the context variables that were set in the task, as if it had been ours."""
    for variable, value in context.items():
        if variable is not current and variable.get(_UNSET) is not value:
            variable.set(value)


def _nothing() -> None: ...


_UNSET = object()

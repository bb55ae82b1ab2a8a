"""The way back to the old app for a request that the new one does not begin to answer."""

from __future__ import annotations

from typing import Any

from ..rollout.fallback import Notice
from ..rollout.proxy import UpstreamUnreachable
from ..types import ASGIApp, Message, Receive, Scope, Send
from .exchange import send_reply
from .variants import Variant, labelled, watch


class Fallback:
    """A new app whose requests go to the old one if it does not begin to answer them.

    For requests that two apps may be asked: see `resilience_mw.rollout.fallback.SAFE`.

    Args:
        variant: the new app.
        old: the old app.
        label: the response header that names the old variant, or ``None``.
        rule: the name of the rule.
    """

    def __init__(
        self, variant: Variant, old: ASGIApp, label: tuple[bytes, bytes] | None, rule: str
    ) -> None:
        self._variant = variant
        self._old = old
        self._label = label
        self._notice = Notice(rule)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request, by the old app if need be."""
        response = watch(self._variant, scope, send)
        replay = Replay(receive)
        try:
            # A copy: frameworks leave what they found in the scope.
            await self._variant.app(dict(scope), replay.record, response.send)
        except Exception as error:
            response.end(error)
            if response.status:
                raise
            if not replay.possible:
                if not isinstance(error, UpstreamUnreachable):
                    raise
                await send_reply(error.reply, scope, send)
                return
            failure: Exception | None = error
        except BaseException as error:
            response.end(error)
            raise
        else:
            if response.status:
                return
            if not replay.possible:
                response.end(None)
                return
            failure = None
            response.end(RuntimeError())
        response.shut()
        self._variant.meter.fallbacks += 1
        self._notice(failure, response.began)
        if self._label is not None:
            send = Labelling(send, self._label).send
        await self._old(scope, replay.repeat, send)


class Replay:
    """Hands on a request without a body, twice if need be.

    Args:
        receive: the server's.
    """

    __slots__ = ("_first", "_receive", "possible")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._first: Message | None = None
        self.possible = True
        """Whether a second app would see the same request, and a client waits for it."""

    async def record(self) -> Message:
        """Be the first app's ``receive``."""
        message = await self._receive()
        if message["type"] == "http.request" and not (
            self._first or message.get("body") or message.get("more_body")
        ):
            self._first = message
        else:
            self.possible = False
        return message

    async def repeat(self) -> Message:
        """Be the second app's ``receive``."""
        first, self._first = self._first, None
        return await self._receive() if first is None else first


class Labelling:
    """Adds the header that names the variant."""

    __slots__ = ("_label", "_send")

    def __init__(self, send: Send, label: tuple[bytes, bytes]) -> None:
        self._send = send
        self._label = label

    def send(self, message: Message) -> Any:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            message = labelled(message, self._label)
        return self._send(message)

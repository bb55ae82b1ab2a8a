"""What may go wrong between the proxy and its upstream, and what the client is told then."""

from __future__ import annotations

from ...core.exchange import Reply, busy

BAD_REQUEST = Reply(400, "Bad Request", close=True)
LENGTH_REQUIRED = Reply(411, "Length Required", close=True)
NO_WEBSOCKET = Reply(403, "WebSockets do not pass this proxy")
NO_TUNNEL = Reply(501, "CONNECT does not pass this proxy", close=True)
LOOP = Reply(508, "Loop Detected")
BAD_GATEWAY = Reply(502, "Bad Gateway")
TIMEOUT = Reply(504, "Gateway Timeout")
NO_CONNECTION = busy("saturated")
"""All connections are taken: our own refusal, which says nothing of the upstream."""


class UpstreamUnreachable(Exception):
    """The upstream did not begin to answer: not one byte of a response head has been passed on.

    Raised only by a proxy that was made with ``raises=True``, and only for GET, HEAD and OPTIONS,
    so that whoever called the proxy may ask another app instead.

    Attributes:
        reply: what the client is to be told if nobody else answers (502, 503 or 504).
    """

    def __init__(self, reply: Reply, why: str) -> None:
        super().__init__(why)
        self.reply = reply


class UpstreamLost(Exception):
    """The upstream broke off in the middle of its response, of which the client has a part.

    It is raised so that the server closes the connection: a client must not take half an answer
    for a whole one.
    """


class BadRequest(Exception):
    """A request that two servers may read in two ways, or that no server should get.

    Attributes:
        reply: the answer.
    """

    def __init__(self, reply: Reply = BAD_REQUEST) -> None:
        super().__init__(reply.body.decode())
        self.reply = reply


class ClientGone(Exception):
    """The client has left, and nobody is there to be answered."""

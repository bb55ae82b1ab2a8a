"""The reverse proxy as a WSGI app."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from time import monotonic
from typing import Any, Unpack

import httpcore

from ...context import remaining
from ...core.exchange import Reply
from ...types import Environ, StartResponse
from ...wsgi.exchange import answer, client_left, exchange_of, status_line
from ..fallback import SAFE
from .errors import (
    BAD_REQUEST,
    LENGTH_REQUIRED,
    NO_WEBSOCKET,
    TIMEOUT,
    BadRequest,
    ClientGone,
    UpstreamUnreachable,
)
from .failures import FAILURES, check_status, is_outage, reply_for, words
from .headers import Framing, response_fields
from .incoming import Incoming, check, to
from .reach import Reach
from .upstream import Options, upstream
from .wsgi_body import RequestBody, ResponseBody
from .wsgi_pool import Pools
from .wsgi_stream import Patience


class WSGIProxy:
    """A reverse proxy to one upstream; see `resilience_mw.rollout.proxy.wsgi.proxy`."""

    def __init__(self, url: str, **options: Unpack[Options]) -> None:
        self.upstream = upstream(url, **options)
        self.reach = Reach(self.upstream.url)
        self.pools = Pools(self.upstream)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one WSGI request."""
        try:
            request = _incoming(environ)
            target, head, framing = check(request, self.upstream, remaining())
            if framing.chunked and not environ.get("wsgi.input_terminated"):
                raise BadRequest(LENGTH_REQUIRED)  # reading on would wait for the next request
        except BadRequest as error:
            if error.reply is NO_WEBSOCKET:
                self.reach.websocket()
            return answer(error.reply, environ, start_response)
        if framing.chunked:
            head.append((b"transfer-encoding", b"chunked"))
        elif framing.length is not None:
            head.append((b"content-length", b"%d" % framing.length))
        result = self._exchange(request.method, target, head, framing, environ)
        if isinstance(result, Reply):
            return answer(result, environ, start_response)
        response = result.response
        try:
            start_response(
                status_line(response.status),
                [
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in response_fields(response.status, response.headers)
                ],
            )
        except BaseException:
            result.close()
            raise
        return result

    def close(self) -> None:
        """Close the connections that this process has open and does not use."""
        self.pools.current().close()

    def _exchange(
        self,
        method: str,
        target: bytes,
        head: list[tuple[bytes, bytes]],
        framing: Framing,
        environ: Environ,
    ) -> ResponseBody | Reply:
        """Send the request; return the response as soon as its head is there."""
        options = self.upstream
        left = remaining()
        if left is not None and left <= 0.0:
            return self._unreachable(method, TIMEOUT, "the deadline has passed")
        ends = math.inf if left is None else monotonic() + left
        left = math.inf if left is None else left
        idle = math.inf if options.idle_timeout is None else options.idle_timeout
        gone = partial(client_left, environ)
        write = min(idle, left)
        connect = min(options.connect_timeout, left)
        timeouts: dict[str, float | None] = {
            "connect": connect,
            "write": None if write == math.inf else write,
        }

        def sent_all() -> None:
            timeouts["read"] = Patience(
                options.timeout, min(ends, monotonic() + options.timeout), gone
            )

        request = httpcore.Request(
            method,
            to(options, target),
            headers=head,
            content=RequestBody(environ["wsgi.input"], framing, sent_all),
            extensions={"timeout": timeouts},
        )
        # If the upstream takes no more of the body, its answer is read at once.
        sent_all()
        pool = self.pools.current()
        try:
            connection = pool.take(connect)
            try:
                response = connection.handle_request(request)
                check_status(response)
            except BaseException:
                pool.give(connection)
                raise
        except ClientGone:
            return BAD_REQUEST  # to nobody, but WSGI has no other way to end
        except FAILURES as error:
            if is_outage(error):
                self.reach.failed(words(error))
            return self._unreachable(method, reply_for(error), words(error))
        self.reach.answered()
        timeouts["read"] = Patience(idle, math.inf, gone)
        return ResponseBody(options.url, response, connection, pool)

    def _unreachable(self, method: str, reply: Reply, why: str) -> Reply:
        if self.upstream.raises and method in SAFE and reply.status >= 500:
            raise UpstreamUnreachable(reply, why)
        return reply


def _incoming(environ: Environ) -> Incoming:
    root = environ.get("SCRIPT_NAME", "").encode("latin-1")
    raw: Any = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    return Incoming(
        method=environ["REQUEST_METHOD"],
        version=environ.get("SERVER_PROTOCOL", "HTTP/1.1").removeprefix("HTTP/"),
        path=root + environ.get("PATH_INFO", "").encode("latin-1"),
        raw_path=raw.encode("latin-1", "replace") if isinstance(raw, str) else None,
        root=root,
        query=environ.get("QUERY_STRING", "").encode("latin-1", "replace"),
        fields=_fields(environ),
        exchange=exchange_of(environ),
        scheme=environ.get("wsgi.url_scheme", "http"),
    )


def _fields(environ: Environ) -> list[tuple[bytes, bytes]]:
    fields: list[tuple[bytes, bytes]] = []
    for key, value in environ.items():
        if key.startswith("HTTP_"):
            name = key[5:]
        elif key in ("CONTENT_TYPE", "CONTENT_LENGTH") and value:
            name = key
        else:
            continue
        if name in ("CONTENT_TYPE", "CONTENT_LENGTH") and key.startswith("HTTP_"):
            continue  # another spelling, by which no server bounds a body
        fields.append(
            (name.replace("_", "-").lower().encode("latin-1"), value.encode("latin-1", "replace"))
        )
    return fields

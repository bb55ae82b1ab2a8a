"""Both bodies of a request through a WSGI proxy, chunk by chunk."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import httpcore

from .errors import ClientGone, UpstreamLost
from .failures import FAILURES, words
from .headers import Framing
from .leftovers import has_leftovers
from .wsgi_pool import Pool

CHUNK = 65_536


class RequestBody:
    """The request's body as httpcore reads it.

    Args:
        source: ``wsgi.input``.
        framing: how it is bounded.
        sent_all: called when the last byte has been read.
    """

    def __init__(self, source: Any, framing: Framing, sent_all: Callable[[], None]) -> None:
        self._source = source
        self._left: float = math.inf if framing.chunked else framing.length or 0
        self._sent_all = sent_all

    def __iter__(self) -> Iterator[bytes]:
        while self._left > 0:
            chunk: bytes = self._source.read(int(min(CHUNK, self._left)))
            if not chunk:
                if self._left < math.inf:
                    raise ClientGone
                break
            self._left -= len(chunk)
            yield chunk
        self._sent_all()


class ResponseBody:
    """The response's body as a WSGI server reads it.

    Closing it early ends the request to the upstream.

    Args:
        url: the upstream's, for error messages.
        response: its response.
        connection: on which that comes.
        pool: where the connection goes in the end.
    """

    def __init__(
        self,
        url: str,
        response: httpcore.Response,
        connection: httpcore.HTTPConnection,
        pool: Pool,
    ) -> None:
        self._url = url
        self.response = response
        self._connection = connection
        self._pool: Pool | None = pool
        self._chunks = response.iter_stream()

    def __iter__(self) -> ResponseBody:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._chunks)
        except StopIteration:
            if has_leftovers(self._connection):
                self.response.extensions["network_stream"].close()
            self.close()
            raise
        except ClientGone:
            self.close()
            raise StopIteration from None
        except FAILURES as error:
            raise UpstreamLost(f"{self._url}: {words(error)}") from None

    def close(self) -> None:
        """Give the connection back, or close it if the response has not been read to its end."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            self.response.close()
        finally:
            pool.give(self._connection)

    def __del__(self) -> None:
        self.close()  # some servers forget to

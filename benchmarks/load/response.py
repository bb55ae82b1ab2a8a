"""An HTTP/1.1 response reader that does as little as a load generator can get away with."""

from __future__ import annotations

from typing import NamedTuple


class MalformedResponse(ValueError):
    """The bytes are not an HTTP/1 response."""


class Response(NamedTuple):
    """What a load generator wants to know of a response that has been read to its end."""

    status: int
    retry_after: str | None
    reusable: bool


class ResponseReader:
    """Tell when one response after another is complete.

    Feed it what the socket gives; it answers with a `Response` once the last byte is there.
    Bodies are skipped, not kept.
    """

    __slots__ = ("_buffer", "_head_only", "_rest", "_retry_after", "_reusable", "_status")

    # Values of `_rest` that are no count of body bytes still to come.
    _HEAD = -1
    _CHUNKED = -2
    _UNTIL_CLOSE = -3

    def __init__(self, method: str = "GET") -> None:
        self._buffer = b""
        self._head_only = method == "HEAD"
        self._rest = self._HEAD
        self._status = 0
        self._retry_after: str | None = None
        self._reusable = True

    @property
    def started(self) -> bool:
        """Whether part of a response has been read."""
        return self._rest != self._HEAD or bool(self._buffer)

    def feed(self, data: bytes) -> Response | None:
        """Take the next bytes; return the response if they complete it.

        Raises:
            MalformedResponse: the status line, a length or a chunk size cannot be read.
        """
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        if self._rest == self._HEAD:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._buffer = data
                return None
            self._read_head(data[:end])
            data = data[end + 4 :]
            if self._status < 200:
                self._rest = self._HEAD
                return self.feed(data) if data else None
        if self._rest >= 0:
            self._rest -= len(data)
            if self._rest > 0:
                return None
            return self._finish(surplus=self._rest < 0)
        if self._rest == self._CHUNKED:
            return self._read_chunks(data)
        return None

    def close(self) -> Response | None:
        """The peer has closed: return the response if that is what ended it."""
        if self._rest != self._UNTIL_CLOSE:
            return None
        self._reusable = False
        return self._finish(surplus=False)

    def _read_head(self, head: bytes) -> None:
        if not head.startswith(b"HTTP/1."):
            raise MalformedResponse(f"no HTTP/1 status line: {head[:40]!r}")
        head = head.lower()
        try:
            self._status = status = int(head[9:12])
            length = _header(head, b"\r\ncontent-length:")
            if self._head_only or status < 200 or status in (204, 304):
                self._rest = 0
            elif length is not None:
                self._rest = int(length)
            elif b"chunked" in (_header(head, b"\r\ntransfer-encoding:") or b""):
                self._rest = self._CHUNKED
            else:
                self._rest = self._UNTIL_CLOSE
        except ValueError as error:
            raise MalformedResponse(f"unreadable response head: {head[:80]!r}") from error
        connection = _header(head, b"\r\nconnection:") or b""
        old = head.startswith(b"http/1.0") and b"keep-alive" not in connection
        self._reusable = not (old or b"close" in connection)
        retry_after = _header(head, b"\r\nretry-after:")
        self._retry_after = None if retry_after is None else retry_after.decode("latin-1")

    def _read_chunks(self, data: bytes) -> Response | None:
        position = 0
        while (line_end := data.find(b"\r\n", position)) >= 0:
            try:
                size = int(data[position:line_end].split(b";", 1)[0], 16)
            except ValueError as error:
                raise MalformedResponse(f"no chunk size: {data[position:line_end]!r}") from error
            if size == 0:
                # Trailers, if any, end with an empty line, as does the last chunk without them.
                end = data.find(b"\r\n\r\n", line_end)
                if end < 0:
                    break
                return self._finish(surplus=end + 4 < len(data))
            after = line_end + 2 + size + 2
            if after > len(data):
                break
            position = after
        self._buffer = data[position:]
        return None

    def _finish(self, *, surplus: bool) -> Response:
        # Bytes after the end answer no request of ours, so the connection cannot be trusted.
        response = Response(self._status, self._retry_after, self._reusable and not surplus)
        self._rest = self._HEAD
        return response


def _header(head: bytes, name: bytes) -> bytes | None:
    """The value of a header in a lower-cased head; `name` includes the line break before it."""
    at = head.find(name)
    if at < 0:
        return None
    begin = at + len(name)
    end = head.find(b"\r\n", begin)
    return head[begin : end if end >= 0 else len(head)].strip()

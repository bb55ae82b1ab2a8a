"""One HTTP/1 response, read within bounds: its status, once all of it has come."""

from __future__ import annotations

import asyncio
import io
import re
import socket
from http.client import HTTPException, HTTPResponse
from typing import cast

from .check import CheckFailed

MAX_HEAD = 64 * 1024
"""Bytes of a response's head, and of the heads of interim answers before it, that are read."""

MAX_BODY = 64 * 1024
"""Bytes of a response's body that are read; of a longer one the beginning is enough."""


_LENGTH = re.compile(r"[0-9]{1,18}")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")


class _Received:
    """A socket, as far as http.client's parser wants one, that has received `data`."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


async def read_status(reader: asyncio.StreamReader, method: str) -> int:
    """Return the status of the response to a `method` request.

    The body is read too, up to `MAX_BODY`: a peer that dies half way through its answer does not
    work. The `reader` must have been made with the limit `MAX_HEAD`.

    Raises:
        CheckFailed: no response, a malformed one, one with too long a head, or one cut short.
        OSError: the connection broke.
    """
    head = await _head(reader, method)
    if head.chunked:
        await _chunks(reader)
    else:
        await _exactly(reader, head.length)
    return head.status


async def _head(reader: asyncio.StreamReader, method: str) -> HTTPResponse:
    left = MAX_HEAD
    while left > 0:
        try:
            data = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            raise CheckFailed("cut short" if error.partial else "closed") from None
        except asyncio.LimitOverrunError:
            raise CheckFailed("bad response") from None
        left -= len(data)
        head = _parse(data, method)
        if head.status >= 200:
            return head
    raise CheckFailed("bad response")


def _parse(data: bytes, method: str) -> HTTPResponse:
    # http.client would take the first interim answer but 100 for the final one, and wait for a
    # second head after a 100 by itself; we hand it one head at a time.
    status_line, _, rest = data.partition(b"\r\n")
    interim = status_line.split(b" ")[1:2] == [b"100"]
    if interim:
        status_line = status_line.replace(b" 100", b" 199", 1)
    head = HTTPResponse(cast(socket.socket, _Received(status_line + b"\r\n" + rest)), method=method)
    try:
        head.begin()
    except (HTTPException, ValueError):
        raise CheckFailed("bad response") from None
    # RFC 9112, section 6.3: none of these may be used. http.client takes the first of several
    # lengths, and one that is no number for none.
    lengths = set(head.headers.get_all("content-length", ()))
    if len(lengths) > 1 or not all(_LENGTH.fullmatch(length.strip()) for length in lengths):
        raise CheckFailed("bad response")
    return head


async def _exactly(reader: asyncio.StreamReader, length: int | None) -> int:
    wanted = MAX_BODY if length is None else min(length, MAX_BODY)
    try:
        await reader.readexactly(wanted)
    except asyncio.IncompleteReadError:
        if length is not None:
            raise CheckFailed("cut short") from None
    return wanted


async def _chunks(reader: asyncio.StreamReader) -> None:
    """Read chunks to the last one, without its trailers, or as many as are enough."""
    received = 0
    while received < MAX_BODY:
        try:
            line = await reader.readuntil(b"\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise CheckFailed("cut short") from None
        digits = line.split(b";")[0].strip()
        if not _SIZE.fullmatch(digits):
            raise CheckFailed("bad response")
        size = int(digits, 16)
        if size == 0:
            return
        received += await _exactly(reader, size + 2)

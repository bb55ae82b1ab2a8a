"""A server in the same loop that answers each path in its own way, and counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import TracebackType

from benchmarks.load import Target

ANSWERS = {
    "/ok": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "/busy": b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy",
    "/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "/close": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    "/until-close": b"HTTP/1.1 200 OK\r\n\r\nok",
    "/cut": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok",
    "/nonsense": b"SSH-2.0-OpenSSH\r\n\r\n",
    "/never": b"",
}
CLOSES = {"/close", "/until-close", "/cut"}


class Peer:
    """Count requests by path, connections, and source addresses."""

    def __init__(self, *, closes_idle: bool = False) -> None:
        self.requests: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.connections = 0
        self.left = 0
        self._closes_idle = closes_idle

    async def __aenter__(self) -> Peer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.close()

    def target(self, path: str) -> Target:
        """The target for one of the paths."""
        return Target("127.0.0.1", self.port, path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.sources[writer.get_extra_info("peername")[0]] += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if self._closes_idle and self.requests["/ok"]:
                    return
                path = head.split(b" ", 2)[1].decode()
                self.requests[path] += 1
                writer.write(ANSWERS[path])
                if path in CLOSES or b"Connection: close" in head:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left += 1
        finally:
            writer.close()

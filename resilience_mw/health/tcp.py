"""Whether somebody listens on a TCP port."""

from __future__ import annotations

import asyncio
from typing import Unpack

from .address import checked
from .check import Check
from .connecting import Connector, reasons
from .keywords import CheckOptions


class TcpCheck(Check):
    """Open a TCP connection, and close it.

    It passes as soon as the kernel has accepted for the listener: a process that is stuck, and
    whose queue of connections is not full yet, still passes. Where the other side speaks HTTP, or
    Redis, ask it a question instead.

        TcpCheck("mail.internal", 25)

    Args:
        host: name or IP address.
        port: 1 to 65535.
        timeout: seconds for the look-up and the connection together.
        options: those of `Check`.

    Reasons of failure: ``timeout``, ``dns``, ``refused``, ``unreachable``, ``closed``.

    Raises:
        ConfigError: an argument breaks its rule.
    """

    def __init__(
        self, host: str, port: int, timeout: float = 1.0, **options: Unpack[CheckOptions]
    ) -> None:
        super().__init__(self._ask, timeout=timeout, **options)
        self._connector = Connector(checked(host, port, "TcpCheck"))
        self._subject = f"{host}:{port}"

    async def _ask(self) -> None:
        with reasons():
            async with asyncio.timeout(self.timeout):
                connection = await self._connector.open(self.timeout)
            connection.close()

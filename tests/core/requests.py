"""A request without a protocol."""

from __future__ import annotations

from collections.abc import Mapping

from resilience_mw.core import Exchange


class Request(Exchange):
    """What a policy sees, given as plain values."""

    def __init__(
        self,
        arrived: float = 100.0,
        path: str = "/",
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.arrived = arrived
        self._path, self._method = path, method
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}

    @property
    def path(self) -> str:
        return self._path

    @property
    def method(self) -> str:
        return self._method

    def header(self, name: str) -> str | None:
        return self._headers.get(name.lower())

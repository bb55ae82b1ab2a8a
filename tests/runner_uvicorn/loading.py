"""Clients that ask all the time, and remember what went wrong."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from benchmarks.process import Server
from benchmarks.talk import Client, get


class Asking:
    """Asks some fifty times a second: half on connections of their own, half on a kept one.

    Leaving it ends the clients.

    Attributes:
        answered: how many got a whole 200.
        failed: what the others got.
    """

    def __init__(self, server: Server, path: str = "/", pause: float = 0.04) -> None:
        self.answered = 0
        self.failed: list[str] = []
        self._server = server
        self._path = path
        self._pause = pause
        self._end = threading.Event()
        jobs = (self._new, self._kept)
        self._threads = [threading.Thread(target=self._run, args=(job,)) for job in jobs]
        self._client: Client | None = None

    def _run(self, ask: object) -> None:
        while not self._end.wait(self._pause):
            try:
                answer = ask()  # type: ignore[operator]
            except OSError as error:
                self.failed.append(repr(error))
                continue
            if answer.ok:
                self.answered += 1
            else:
                self.failed.append(f"{answer.status} {answer.ended}")

    def _new(self) -> object:
        return get(self._server, self._path)

    def _kept(self) -> object:
        client = self._client or Client(self._server)
        answer = client.get(self._path)
        self._client = client
        if answer.says_close or not answer.ok:
            client.close()
            self._client = None
        return answer

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(20)
        if self._client is not None:
            self._client.close()

"""The app's own start and end, which a stop may cut short."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.lifespan.on import LifespanOn


class Lifespan(LifespanOn):
    """Uvicorn's lifespan, which can be cancelled while the app is still starting."""

    _task: asyncio.Task[Any] | None = None

    async def main(self) -> None:
        self._task = asyncio.current_task()
        await super().main()

    def abandon(self) -> asyncio.Task[Any] | None:
        """Cancel the app wherever it is, and return the task in which it cleans up."""
        self.startup_failed = True  # so that Uvicorn does not report our cancellation as an error
        if self._task is not None:
            self._task.cancel()
        return self._task

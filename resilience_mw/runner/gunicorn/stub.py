"""What the mixins know of the worker class that they are put in front of.

Gunicorn has no types, and a mixin's base is chosen only when the user's worker class is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    class Worker:
        """A Gunicorn worker, whichever class it is."""

        age: int
        pid: int
        ppid: int
        cfg: Any
        log: Any
        alive: bool
        booted: bool
        sockets: list[Any]
        wsgi: Any

        def init_process(self) -> None: ...
        def run(self) -> None: ...
        def notify(self) -> None: ...
        def handle_exit(self, sig: int, frame: Any) -> None: ...
        def handle_quit(self, sig: int, frame: Any) -> None: ...

else:
    Worker = object

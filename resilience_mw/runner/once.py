"""What only one of several processes is to do."""

from __future__ import annotations

import os


class Once:
    """A token that whoever asks first takes, be it a child of the process that made it."""

    def __init__(self) -> None:
        # A byte in a pipe is read by one process and by no other, without a lock that could stay
        # taken by one that died.
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.write(writing, b"1")
        os.close(writing)

    def __del__(self) -> None:
        os.close(self._reading)

    def first(self) -> bool:
        """Return whether nobody has asked before."""
        return bool(os.read(self._reading, 1))

"""`getsockopt` on a file descriptor that belongs to somebody else.

Python asks only through a socket object, which owns its descriptor: an exception between making one
and `detach` (Ctrl-C, a server's signal handler) would close the server's socket.
"""

from __future__ import annotations

import functools
from typing import Any


def getsockopt(fd: int, level: int, option: int, size: int) -> bytes:
    """Return the option's value, at most `size` bytes of it.

    Raises:
        OSError: the descriptor is closed, no socket, or lacks the option; or this Python cannot
            call the C library.
    """
    call, new_buffer, new_length, by_reference = _library(size)
    buffer, length = new_buffer(), new_length(size)
    if call(fd, level, option, buffer, by_reference(length)) != 0:
        raise OSError(f"no such socket option on descriptor {fd}")
    value: bytes = buffer.raw
    return value[: length.value]


@functools.cache
def _library(size: int) -> tuple[Any, Any, Any, Any]:
    try:
        import ctypes

        # PyDLL keeps the GIL: the call lasts less than handing the GIL over and waiting for it.
        # No argument types: the default conversions are right for these and a third faster.
        function = ctypes.PyDLL(None).getsockopt
    except (ImportError, OSError, AttributeError, TypeError):
        return _out_of_reach, bytes, int, int
    return function, ctypes.c_char * size, ctypes.c_uint, ctypes.byref


def _out_of_reach(*_: object) -> int:
    return -1

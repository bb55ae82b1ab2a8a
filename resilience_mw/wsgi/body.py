"""Know when a WSGI response is over.

The only sign is ``close()`` of what the app returned, which may come twice, or never: then the
garbage collector tells. So what is called at the end must be harmless when called again, and must
not wait for anything.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..types import Environ

End = Callable[[], None]


class Body:
    """An app's iterable that calls ``end`` when it is closed, or dropped without that.

    Args:
        iterable: what the app returned.
        end: called after the iterable's own ``close``, even if that raises.
    """

    __slots__ = ("__weakref__", "_end", "_iterable")

    def __init__(self, iterable: Iterable[bytes], end: End) -> None:
        self._iterable = iterable
        self._end: End | None = end

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._iterable)

    def close(self) -> None:
        """Close the app's iterable, once, and report the end."""
        end, self._end = self._end, None
        if end is None:
            return
        try:
            close = getattr(self._iterable, "close", None)
            if close is not None:
                close()
        finally:
            end()

    def __del__(self) -> None:
        if self._end is not None:
            self._end()


class SizedBody(Body):
    """The same for an iterable of known length: servers take Content-Length from one of one."""

    __slots__ = ()
    _iterable: Any

    def __len__(self) -> int:
        return len(self._iterable)


class Chunks(list[bytes]):
    """A body that is a list, and stays one: some servers look at the type."""

    __slots__ = ("_end",)

    def __init__(self, chunks: Iterable[bytes], end: End) -> None:
        super().__init__(chunks)
        self._end: End | None = end

    def close(self) -> None:
        """Report the end."""
        end, self._end = self._end, None
        if end is not None:
            end()

    __del__ = close


def watch(iterable: Any, environ: Environ, end: End) -> Iterable[bytes]:
    """Return ``iterable`` in a form that calls ``end`` when the response is over."""
    if type(iterable) in (list, tuple):
        return Chunks(iterable, end)
    wrapper = environ.get("wsgi.file_wrapper")
    if isinstance(wrapper, type) and isinstance(iterable, wrapper):
        # Servers recognize their own wrapper by its class and then use sendfile: keep it.
        return _hook(iterable, end)
    return SizedBody(iterable, end) if hasattr(iterable, "__len__") else Body(iterable, end)


def _hook(wrapper: Any, end: End) -> Iterable[bytes]:
    closes = [getattr(wrapper, "close", None)]

    def close_once() -> None:
        try:
            close = closes.pop() if closes else None
            if close is not None:
                close()
        finally:
            end()

    try:
        wrapper.close = close_once
    except AttributeError:
        end()  # written in C and closed to us: the slot ends with the call of the app
    else:
        with contextlib.suppress(TypeError):  # it may allow no weak references
            weakref.finalize(wrapper, end).atexit = False
    body: Iterable[bytes] = wrapper
    return body

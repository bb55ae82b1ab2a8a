"""Know when a WSGI response is over.

The only sign is ``close()`` of what the app returned, which may come twice, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..types import Environ

End = Callable[[], None]


class Body:
    """An app's iterable that calls ``end`` once when it is closed, or ``lost`` if it never is.

    Args:
        iterable: what the app returned.
        end: called exactly once, after the iterable's own ``close`` even if that raises.
        lost: called instead when the server drops the body without closing it. It may be called
            by the garbage collector at any moment, so it must not take a lock.
    """

    __slots__ = ("__weakref__", "_end", "_iterable", "_lost")

    def __init__(self, iterable: Iterable[bytes], end: End, lost: End) -> None:
        self._iterable = iterable
        self._end: End | None = end
        self._lost = lost

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._iterable)

    def close(self) -> None:
        """Close the app's iterable and report the end."""
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
            self._lost()


class Chunks(list[bytes]):
    """A body that is a list, and stays one: servers take Content-Length from a list of one."""

    __slots__ = ("_end", "_lost")

    def __init__(self, chunks: Iterable[bytes], end: End, lost: End) -> None:
        super().__init__(chunks)
        self._end: End | None = end
        self._lost = lost

    def close(self) -> None:
        """Report the end."""
        end, self._end = self._end, None
        if end is not None:
            end()

    def __del__(self) -> None:
        if self._end is not None:
            self._lost()


def watch(iterable: Any, environ: Environ, end: End, lost: End) -> Iterable[bytes]:
    """Return ``iterable`` in a form that calls ``end`` once when the response is over."""
    if type(iterable) in (list, tuple):
        return Chunks(iterable, end, lost)
    wrapper = environ.get("wsgi.file_wrapper")
    if isinstance(wrapper, type) and isinstance(iterable, wrapper):
        # Servers recognize their own wrapper by its class and then use sendfile: keep it.
        return _hook(iterable, end)
    return Body(iterable, end, lost)


def _hook(wrapper: Any, end: End) -> Iterable[bytes]:
    pending = [end]
    close = getattr(wrapper, "close", None)

    def close_once() -> None:
        try:
            if close is not None:
                close()
        finally:
            if pending:
                pending.pop()()

    try:
        wrapper.close = close_once
    except AttributeError:
        end()  # written in C and closed to us: the slot ends with the call of the app
    body: Iterable[bytes] = wrapper
    return body

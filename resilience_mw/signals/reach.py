"""From what a server hands to an application to the client's socket.

No protocol offers the socket, but `send` belongs to an object that writes to it, and middlewares
keep the `send` they wrap. The walk looks at attributes and closures and calls nothing of theirs but
`get_extra_info`; what it does not recognize ends it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import BuiltinMethodType, CodeType
from typing import Any

_DEPTH = 32
"""Wrappers followed at most: two around each of fifteen middlewares."""

_KEPT_AS = ("_send", "server_send", "send")
"""Attributes under which objects keep the `send` they wrap (Starlette, Hypercorn and ours)."""


def socket_behind(send: Any) -> Any:
    """Return the socket that an ASGI `send` writes to, or `None`.

    Reaches it through Starlette's and FastAPI's own wrappers on Uvicorn (its request cycle has the
    transport), Hypercorn (stream, protocol, connection) and Gunicorn's asgi worker (a closure over
    the protocol).
    """
    return _walk(send)[0]


def is_closing(send: Any) -> bool | None:
    """Return whether the client's connection is closed; ``None`` where it is out of reach."""
    ask = getattr(_walk(send, _transport_of)[0], "is_closing", None)
    return None if ask is None else bool(ask())


def comes_from_thread(send: Any) -> bool:
    """Return whether requests reach the loop from another thread: `send` is not made of Python.

    Granian reads requests in threads of its own and calls into the loop.
    """
    return isinstance(_walk(send)[1], BuiltinMethodType)


def _socket_of(owner: Any) -> Any:
    """Return the socket of an object that has asyncio's transport or stream writer."""
    transport = _transport_of(owner)
    return None if transport is None else transport.get_extra_info("socket")


def _transport_of(owner: Any) -> Any:
    """Return asyncio's transport or stream writer, if an object has one."""
    for name in ("transport", "writer"):
        transport = getattr(owner, name, None)
        if hasattr(transport, "get_extra_info"):
            return transport
    return None


def _walk(send: Any, find: Callable[[Any], Any] = _socket_of) -> tuple[Any, Any]:
    """Return what was found in one of its owners, if anything, and the innermost `send` seen."""
    try:
        for _ in range(_DEPTH):
            inner = None
            owner = getattr(send, "__self__", None)
            if owner is None:
                owner, inner = _captured(send)
            if inner is None:
                found = find(owner)
                if found is not None:
                    return found, send
                inner = _kept(owner)
            if inner is None:
                break
            send = inner
    except Exception:
        # Attributes of objects that we do not know may raise anything, as may a closed transport
        # (uvloop) or a cell that is still empty.
        pass
    return None, send


def _captured(send: Any) -> tuple[Any, Any]:
    """Return the object and the inner `send` that a callable holds on to; at most one of them."""
    if isinstance(send, functools.partial):
        return None, send.keywords.get("send", send.func)
    code = getattr(send, "__code__", None)
    if code is None:
        return send, None
    to_send, to_self = _cells(code)
    if to_send is not None:
        return None, send.__closure__[to_send].cell_contents
    return send.__closure__[to_self].cell_contents if to_self is not None else None, None


@functools.lru_cache(maxsize=256)
def _cells(code: CodeType) -> tuple[int | None, int | None]:
    """Return the places of the closed-over `send` and `self`, by the names that code gives them."""
    names = code.co_freevars
    to_send = next((index for index, name in enumerate(names) if name.endswith("send")), None)
    return to_send, names.index("self") if "self" in names else None


def _kept(owner: Any) -> Any:
    """Return the `send` that an object wraps; a method of its own leads nowhere."""
    for name in _KEPT_AS:
        inner = getattr(owner, name, None)
        if callable(inner) and getattr(inner, "__self__", None) is not owner:
            return inner
    return None


def environ_socket(environ: dict[str, Any]) -> Any:
    """Return the client's socket of a WSGI request, or `None`.

    Gunicorn and Werkzeug's server put it into the environment; Waitress puts a method of its
    channel there.
    """
    sock = environ.get("gunicorn.socket") or environ.get("werkzeug.socket")
    if sock is None:
        channel = getattr(environ.get("waitress.client_disconnected"), "__self__", None)
        sock = getattr(channel, "socket", None)
    return sock

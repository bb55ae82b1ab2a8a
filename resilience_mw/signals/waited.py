"""How long a request has waited before the application saw it, from the best source there is.

Best first, as chosen by the first request of a server and loop:

| source | what it tells |
|---|---|
| `stamp` | arrival of the request's first byte, noted by our runner's protocol |
| `tcp` | age of the last data on the connection; less than the truth while a body still arrives |
| `turn` | start of the loop turn that read it (asyncio), or of this one (uvloop, Granian) |
| `header` | `X-Request-Start` or `X-Queue-Start` of a trusted proxy, by its clock |
| `lag` | how late the loop's last tick ran |

All but the header are lower bounds, and `turn` yields to a trusted header that says more.
Each value is within [0, `MAX_WAIT`] seconds; a request whose source fails (its connection is closed
by now) is measured by the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

from ..types import Environ, Scope, Send
from .lag import Lag
from .meter import LoopMeter
from .peers import certain_peer
from .proxies import TrustedProxies
from .reach import comes_from_thread, environ_socket, socket_behind
from .request_start import MAX_WAIT, request_start
from .tcp import has_tcp_info, tcp_age

__all__ = [
    "ARRIVED",
    "MAX_WAIT",
    "TrustedProxies",
    "WaitedASGI",
    "WaitedWSGI",
    "choose_asgi",
    "choose_wsgi",
    "request_start",
]

ARRIVED = "resilience_mw.arrived"
"""Key in an ASGI scope or a WSGI environment: monotonic seconds when the first byte arrived."""

_HEADERS = frozenset((b"x-request-start", b"x-queue-start"))

MeasureASGI = Callable[[Scope, Send, float], float | None]
MeasureWSGI = Callable[[Environ, float], float | None]
Measure = TypeVar("Measure")


class _Waited(Generic[Measure]):
    """The chosen source and, behind it, the ones that stand in when it fails."""

    __slots__ = ("_measures", "source")

    def __init__(self, sources: Iterable[tuple[str, Measure]]) -> None:
        named = list(sources)
        self.source = named[0][0] if named else "none"
        self._measures = tuple(measure for _, measure in named)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(source={self.source!r})"


class WaitedASGI(_Waited[MeasureASGI]):
    """Tells how long ASGI requests of one server and loop have waited; `source` says by what."""

    __slots__ = ()

    def __call__(self, scope: Scope, send: Send, now: float) -> float:
        """Return the seconds that this request has waited by `now` (monotonic), at least 0."""
        for measure in self._measures:
            waited = measure(scope, send, now)
            if waited is not None:
                return _clamped(waited)
        return 0.0


class WaitedWSGI(_Waited[MeasureWSGI]):
    """Tells how long WSGI requests of one server have waited; `source` says by what."""

    __slots__ = ()

    def __call__(self, environ: Environ, now: float) -> float:
        """Return the seconds that this request has waited by `now` (monotonic), at least 0."""
        for measure in self._measures:
            waited = measure(environ, now)
            if waited is not None:
                return _clamped(waited)
        return 0.0


def choose_asgi(
    scope: Scope,
    send: Send,
    *,
    meter: LoopMeter | None = None,
    lag: Lag | None = None,
    proxies: TrustedProxies | None = None,
) -> WaitedASGI:
    """Choose by an HTTP request how this and all later ones are measured.

    Args:
        scope: its scope.
        send: its `send`, as the server or the middlewares outside handed it over.
        meter: the running loop's meter, if one is attached.
        lag: a tick's lateness, if somebody feeds one.
        proxies: whose headers to believe; nobody's when not given.
    """
    header = _scope_header(proxies) if proxies else None
    sources: list[tuple[str, MeasureASGI]] = []
    if ARRIVED in scope:
        sources.append(("stamp", lambda scope, send, now: _since(scope.get(ARRIVED), now)))
    if has_tcp_info(socket_behind(send)):
        sources.append(("tcp", lambda scope, send, now: tcp_age(socket_behind(send))))
    if meter is not None and meter.turn_started() is not None:
        sources.append(("turn", _turn(meter, comes_from_thread(send), header)))
    if header is not None:
        sources.append(("header", header))
    if lag is not None:
        sources.append(("lag", lambda scope, send, now: lag.read(now)))
    return WaitedASGI(sources)


def choose_wsgi(environ: Environ, *, proxies: TrustedProxies | None = None) -> WaitedWSGI:
    """Choose by a request how this and all later ones of the server are measured.

    Args:
        environ: its environment.
        proxies: whose headers to believe; nobody's when not given.
    """
    sources: list[tuple[str, MeasureWSGI]] = []
    if ARRIVED in environ:
        sources.append(("stamp", lambda environ, now: _since(environ.get(ARRIVED), now)))
    if has_tcp_info(environ_socket(environ)):
        sources.append(("tcp", lambda environ, now: tcp_age(environ_socket(environ))))
    if proxies:
        sources.append(("header", _environ_header(proxies)))
    return WaitedWSGI(sources)


def _clamped(waited: float) -> float:
    if waited < 0.0:
        return 0.0
    return waited if waited < MAX_WAIT else MAX_WAIT


def _since(moment: object, now: float) -> float | None:
    return now - moment if isinstance(moment, float) else None


def _turn(meter: LoopMeter, from_thread: bool, header: MeasureASGI | None) -> MeasureASGI:
    started = meter.this_turn_started if from_thread else meter.turn_started

    def measure(scope: Scope, send: Send, now: float) -> float | None:
        waited = _since(started(), now)
        if header is None or waited is None:
            return waited
        # The loop knows nothing of the time before it looked at the socket; the proxy does.
        return max(waited, header(scope, send, now) or 0.0)

    return measure


def _scope_header(proxies: TrustedProxies) -> MeasureASGI:
    def measure(scope: Scope, send: Send, _: float) -> float | None:
        client = scope.get("client")
        told = client[0] if client else None
        header = partial(_in_scope, scope)
        if not proxies.trusts(certain_peer(socket_behind(send), told, header)):
            return None
        # A dict keeps the last of a kind: the nearest proxy's.
        found = {name: value for name, value in scope["headers"] if name in _HEADERS}
        value = found.get(b"x-request-start", found.get(b"x-queue-start"))
        return None if value is None else request_start(value, time.time())

    return measure


def _environ_header(proxies: TrustedProxies) -> MeasureWSGI:
    def measure(environ: Environ, _: float) -> float | None:
        told, header = environ.get("REMOTE_ADDR"), partial(_in_environ, environ)
        if not proxies.trusts(certain_peer(environ_socket(environ), told, header)):
            return None
        value = environ.get("HTTP_X_REQUEST_START", environ.get("HTTP_X_QUEUE_START"))
        return request_start(value, time.time()) if isinstance(value, str) else None

    return measure


def _in_scope(scope: Scope, name: str) -> str:
    wanted = name.encode()
    return ",".join(value.decode("latin-1") for key, value in scope["headers"] if key == wanted)


def _in_environ(environ: Environ, name: str) -> str | None:
    return environ.get(f"HTTP_{name.upper().replace('-', '_')}")

"""The two apps of a roll-out's rule, watched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any

from ..core.exchange import KEY, Exchange
from ..core.rollout.meter import Meter
from ..types import Environ, StartResponse, WSGIApp
from .exchange import client_left
from .section import Section
from .watch import Watch

_CODES = {f"{status.value} {status.phrase}": status.value for status in HTTPStatus}
"""The codes of the usual status lines: to look one up costs a third of reading it."""


class Variant:
    """One of the two apps of a rule.

    Args:
        app: what serves the request.
        meter: counts how it goes.
        label: a response header that names the variant, or ``None``.
        section: the lock under which counts change.
        watch: looks at the guard.
    """

    def __init__(
        self,
        app: WSGIApp,
        meter: Meter,
        label: tuple[str, str] | None,
        section: Section,
        watch: Watch,
    ) -> None:
        self.app = app
        self.meter = meter
        self.label = label
        self.section = section
        self.watch = watch

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one WSGI request."""
        # As in `begin`, whose call is a tenth of what all this costs.
        response = Response()
        response.variant = self
        response.environ = environ
        response.server_start_response = start_response
        response.began = now = time.monotonic()
        meter = self.meter
        if meter.running is not None:
            meter.running.add(response)
            if now >= meter.look_at:
                self.watch.look(meter, now)
        try:
            iterable = self.app(environ, response.start)
        except BaseException:
            response.raised()
            raise
        if response.status and type(iterable) is list:
            return iterable  # as most are; it cannot fail
        return response.watch(iterable)


def begin(variant: Variant, environ: Environ, start_response: StartResponse) -> Response:
    """Return what watches the response to a request that ``variant`` is about to get."""
    response = Response()
    response.variant = variant
    response.environ = environ
    response.server_start_response = start_response
    response.began = now = time.monotonic()
    meter = variant.meter
    if meter.running is not None:
        meter.running.add(response)
        if now >= meter.look_at:
            variant.watch.look(meter, now)
    return response


class Response:
    """What is known of the response to one request."""

    variant: Variant
    environ: Environ
    server_start_response: StartResponse
    began: float
    """When the app gets the request (monotonic seconds)."""
    status = 0
    """Status of the response; 0 until it starts."""
    over = False
    """Whether its end has been noted."""

    def start(
        self, status: str, headers: list[tuple[str, str]], exc_info: Any = None
    ) -> Callable[[bytes], object]:
        """Pass the start of the response on, noting it; ``exc_info`` only if it was given."""
        variant = self.variant
        if not self.status:
            self.status = code = _CODES.get(status) or int(status[:3])
            busy = code == 503 and any(name.lower() == "retry-after" for name, _ in headers)
            exchange = self.environ.get(KEY)
            section = variant.section
            now = time.monotonic()
            late = exchange is not None and _is_late(exchange, now)
            meter = variant.meter
            if meter.running is not None:
                meter.running.discard(self)
            # Frameworks answer so when the client stops sending its request.
            left = code >= 500 and client_left(self.environ)
            with section.lock:
                if left:
                    meter.left(self.began, now)
                else:
                    meter.answered(code, self.began, now, late, busy)
            if section.due:
                section.settle()
        elif exc_info is not None and status >= "5":
            self.raised()  # before a byte was sent the app has changed its mind
        if variant.label is not None:
            headers = labelled(headers, variant.label)
        if exc_info is None:
            return self.server_start_response(status, headers)
        return self.server_start_response(status, headers, exc_info)

    def raised(self) -> None:
        """Note that the app failed, once."""
        if self.over:
            return
        left = client_left(self.environ)
        if self.status and (left or self.status >= 500):
            return  # a 500 has been counted
        self.over = True
        meter, now = self.variant.meter, time.monotonic()
        if self.status:
            job = partial(meter.broke, now)
        else:
            if meter.running is not None:
                meter.running.discard(self)
            exchange = self.environ.get(KEY)
            late = exchange is not None and _is_late(exchange, now)
            if left and not late:
                job = partial(meter.left, self.began, now)
            else:
                job = partial(meter.failed, self.began, now, late)
        self.variant.section.soon(job)

    def end(self) -> None:
        """Note that the response is over: without a start, nobody has waited for it."""
        if self.over:
            return
        self.over = True
        if not self.status:
            meter = self.variant.meter
            if meter.running is not None:
                meter.running.discard(self)
            self.variant.section.soon(partial(meter.left, self.began, time.monotonic()))

    def shut(self) -> None:
        """Swallow what the app may still send: another one answers."""
        self.status = self.status or 500
        self.server_start_response = _swallow

    def watch(self, iterable: Any) -> Iterable[bytes]:
        """Return the body, with its failures and its end noted."""
        body: Iterable[bytes] = iterable
        if self.status:
            if type(iterable) in (list, tuple):
                return body  # it cannot fail
            wrapper = self.environ.get("wsgi.file_wrapper")
            if isinstance(wrapper, type) and isinstance(iterable, wrapper):
                return body  # servers know it by its type
        return (SizedChunks if hasattr(iterable, "__len__") else Chunks)(iterable, self)


def _swallow(*start: object) -> Callable[[bytes], object]:
    """Start nothing."""
    return lambda data: None


def _is_late(exchange: Exchange, now: float) -> bool:
    return exchange.deadline is not None and now > exchange.deadline


class Chunks:
    """A body whose failures are noted, and its end, even if nobody closes it.

    Args:
        iterable: what the app returned.
        response: what is known of it.
    """

    __slots__ = ("_chunks", "_iterable", "_response")

    def __init__(self, iterable: Any, response: Response) -> None:
        self._iterable = iterable
        self._response = response
        self._chunks: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            if self._chunks is None:
                self._chunks = iter(self._iterable)
            return next(self._chunks)
        except StopIteration:
            if not self._response.status:
                self._response.raised()  # the server has nothing to answer with
            raise
        except Exception:
            self._response.raised()
            raise

    def close(self) -> None:
        """Close the app's iterable, and note the end."""
        try:
            close = getattr(self._iterable, "close", None)
            if close is not None:
                close()
        finally:
            self._response.end()

    def __del__(self) -> None:
        self._response.end()


class SizedChunks(Chunks):
    """The same of known length: servers take Content-Length from one of one."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self._iterable)


def labelled(headers: list[tuple[str, str]], label: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the headers with the one that names the variant, instead of any of that name."""
    name = label[0].lower()
    return [*(header for header in headers if header[0].lower() != name), label]

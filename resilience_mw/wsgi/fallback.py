"""The way back to the old app for a request that the new one does not begin to answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from ..core.rollout.meter import Meter
from ..rollout.fallback import SAFE, Notice
from ..rollout.proxy import UpstreamUnreachable
from ..types import Environ, StartResponse, WSGIApp
from .exchange import answer
from .section import Section
from .variants import Variant, begin, labelled
from .watch import Watch


class FallbackVariant(Variant):
    """A new app whose safe requests go to the old one if it does not begin to answer them.

    Args:
        app: the new app.
        meter: counts how it goes.
        label: a response header that names the new variant, or ``None``.
        section: the lock under which counts change.
        watch: looks at the guard.
        old: the old app.
        old_label: the header that names the old variant, or ``None``.
        name: of the rule.
    """

    def __init__(
        self,
        app: WSGIApp,
        meter: Meter,
        label: tuple[str, str] | None,
        section: Section,
        watch: Watch,
        *,
        old: WSGIApp,
        old_label: tuple[str, str] | None,
        name: str,
    ) -> None:
        super().__init__(app, meter, label, section, watch)
        self._old = old
        self._old_label = old_label
        self._notice = Notice(name)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one WSGI request, by the old app if need be."""
        if environ["REQUEST_METHOD"] not in SAFE:
            return super().__call__(environ, start_response)
        response = begin(self, environ, start_response)
        iterable: Any = ()
        try:
            # A copy: frameworks leave what they found in the environ.
            iterable = self.app(dict(environ), response.start)
            if not response.status:
                # A generator has done nothing yet: its first chunk shows whether it can begin.
                iterable = Begun(iterable)
        except Exception as error:
            response.raised()
            if response.status:
                raise
            if _has_body(environ):
                if not isinstance(error, UpstreamUnreachable):
                    raise
                return answer(error.reply, environ, start_response)
            self._notice(error, response.began)
        except BaseException:
            response.raised()
            raise
        else:
            if response.status or _has_body(environ):
                return response.watch(iterable)
            response.raised()
            with contextlib.suppress(Exception):
                iterable.close()  # the old app answers, whatever the new one does
            self._notice(None, response.began)
        response.shut()
        self.section.soon(self._count)
        if self._old_label is not None:
            start_response = partial(_start_labelled, start_response, self._old_label)
        return self._old(environ, start_response)

    def _count(self) -> None:
        self.meter.fallbacks += 1


class Begun:
    """A body whose first chunk has been asked for.

    Args:
        iterable: what the app returned; closed at once if it fails.
    """

    __slots__ = ("_chunks", "_iterable")

    def __init__(self, iterable: Any) -> None:
        self._iterable = iterable
        try:
            chunks = iter(iterable)
            first = list(_first(chunks))
        except BaseException:
            self.close()
            raise
        self._chunks = chain(first, chunks)

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        """Close the app's iterable."""
        close = getattr(self._iterable, "close", None)
        if close is not None:
            close()


def _first(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        return


def _has_body(environ: Environ) -> bool:
    """Whether the request has a body, which the first app may have read."""
    return environ.get("CONTENT_LENGTH", "") not in ("", "0") or (
        "HTTP_TRANSFER_ENCODING" in environ
    )


def _start_labelled(
    start_response: StartResponse,
    label: tuple[str, str],
    status: str,
    headers: list[tuple[str, str]],
    *exc_info: Any,
) -> Callable[[bytes], object]:
    return start_response(status, labelled(headers, label), *exc_info)

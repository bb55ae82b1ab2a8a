"""Run Django requests that own a thread through the WSGI driver.

The driver is given an app that only says "admitted"; the middleware chain runs between that and
the close of the app's iterable, as the body of a generator app does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from ..context import current
from ..core.policy import Policy
from ..types import Environ, StartResponse
from ..wsgi import Guard
from .responses import answer, on_close

KEY = "resilience_mw.django"


class ThreadDriver:
    """Holds the WSGI guard of one middleware chain.

    Args:
        policies: what decides, outermost first.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.guard = Guard(_admitted, *policies)

    def visit(self, request: HttpRequest) -> Visit:
        """Decide about a request, waiting in a queue if need be."""
        return Visit(self.guard, request)


class Visit:
    """One request, from the decision to the end of its response.

    `refusal` is the answer if there is one already. If not, get the view's response and call
    `leave` with it, or `fail` if there is none.
    """

    def __init__(self, guard: Guard, request: HttpRequest) -> None:
        self._before = current.get()
        self._admitted = False
        self._begin: StartResponse = self._start
        self._status = 0
        self._headers: Sequence[tuple[str, str]] = ()
        # Django has decoded the path; a WSGI server would not have.
        path = request.path_info.encode(errors="replace").decode("latin-1")
        environ = {**request.META, "PATH_INFO": path, KEY: self}
        self._body: Any = guard(environ, self._start)
        self.refusal: HttpResponse | None = None
        if not self._admitted:
            self.refusal = answer(self._status, self._headers, b"".join(self._body))

    def admit(self, begin: StartResponse) -> None:
        """Be let in; ``begin`` tells the guard that a response starts."""
        self._admitted = True
        self._begin = begin

    def leave(self, response: HttpResponseBase) -> HttpResponseBase:
        """End the visit with the response: now, or at the last byte of a stream."""
        self._restore()
        self._begin(f"{response.status_code} {response.reason_phrase}", [])
        if response.streaming:
            on_close(response, self._body.close)
        else:
            self._body.close()
        return response

    def fail(self) -> None:
        """End the visit without a response."""
        self._restore()
        self._body.close()

    def _restore(self) -> None:
        # Other than a task, a thread goes on to its next request in the same context.
        current.set(self._before)

    def _start(self, status: str, headers: Sequence[tuple[str, str]]) -> Callable[[bytes], object]:
        self._status, self._headers = int(status[:3]), headers
        return bytes  # nobody here calls a server's ``write``


def _admitted(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    visit: Visit = environ[KEY]
    visit.admit(start_response)
    return ()

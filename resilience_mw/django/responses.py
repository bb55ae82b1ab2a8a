"""Make Django responses of our answers, and know when a response of the project is over."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase


def answer(status: int, headers: Iterable[tuple[str, str]], body: bytes) -> HttpResponse:
    """Return what a driver would have sent, marked as logged.

    Django logs every status from 500 on as an error, and may mail it to the admins. Under
    overload that would be one mail a refusal; the counts are in the snapshot.
    """
    response: Any = HttpResponse(body, status=status)
    for name, value in headers:
        response[name] = value
    response._has_been_logged = True
    refusal: HttpResponse = response
    return refusal


def on_close(response: HttpResponseBase, closer: Callable[[], object]) -> None:
    """Call ``closer`` when Django closes ``response``, whatever other closers raise."""
    closers: list[Callable[[], object]] = vars(response)["_resource_closers"]
    closers.append(closer)


def discard(response: HttpResponseBase) -> None:
    """Free what a response holds that nobody gets.

    Its `close` would do that, but tell Django as well that the request ends here.
    """
    for closer in vars(response)["_resource_closers"]:
        with contextlib.suppress(Exception):
            closer()

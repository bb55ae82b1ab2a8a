"""A Django middleware chain behind a row of policies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from ..core.exchange import KEY, Exchange
from ..core.health import HealthPolicy
from ..core.lifecycle import State
from ..core.policy import Policy
from ..core.snapshot import Snapshot, summarize
from ..exceptions import ConfigError
from .event_loop import LoopDriver
from .threads import ThreadDriver

GetResponse = Callable[[HttpRequest], Any]


class Guard:
    """The rest of the middleware chain behind policies, outermost first.

    Synchronous or asynchronous as ``get_response`` is, without a change of threads. A request that
    is already behind a guard around the ASGI or WSGI application passes untouched.

    Args:
        get_response: the next middleware, or the view.
        policies: what decides; each at most once.

    Raises:
        ConfigError: a policy reroutes, for which the application has to be wrapped from outside;
            or a policy is used twice, or already by another kind of guard.

    Example:
        >>> from resilience_mw.core import Gate
        >>> Guard(lambda request: None, Gate(10)).snapshot().limit
        10
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: GetResponse, *policies: Policy) -> None:
        for policy in policies:
            if policy.reroutes:
                raise ConfigError(
                    "policies in MIDDLEWARE must not reroute (wrap the application in wsgi.py or "
                    f"asgi.py instead), got {type(policy).__name__}"
                )
            if isinstance(policy, HealthPolicy):
                policy.lifecycle.advance(State.READY)  # Django builds its chain when it is loaded
                if policy.apart is not None:
                    policy.apart.arm()
        self.get_response = get_response
        self.policies = policies
        self._threads: ThreadDriver | None = None
        self._loop: LoopDriver | None = None
        self._building = threading.Lock()
        self._async = iscoroutinefunction(get_response)
        if self._async:
            markcoroutinefunction(self)
        else:
            self._threads = ThreadDriver(policies)

    def __call__(self, request: HttpRequest) -> Any:
        """Return the response; in an asynchronous chain, a coroutine for it."""
        if self._async:
            return self._respond(request)
        if _guarded(request):
            return self.get_response(request)
        visit = self._by_thread().visit(request)
        if visit.refusal is not None:
            return visit.refusal
        try:
            response = self.get_response(request)
        except BaseException:
            visit.fail()
            raise
        return visit.leave(response)

    async def _respond(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase
        if _guarded(request):
            response = await self.get_response(request)
            return response
        if isinstance(request, ASGIRequest):
            return await self._by_loop().respond(request, self.get_response)
        # Under WSGI an asynchronous chain gets an event loop of its own for each request, so that
        # threads, not tasks, are what runs side by side.
        visit = self._by_thread().visit(request)
        if visit.refusal is not None:
            return visit.refusal
        try:
            response = await self.get_response(request)
        except BaseException:
            visit.fail()
            raise
        return visit.leave(response)

    def snapshot(self) -> Snapshot:
        """Return the state of the guard and of each of its policies."""
        driver = self._threads or self._loop
        if driver is not None:
            return driver.guard.snapshot()
        return summarize(tuple(policy.snapshot() for policy in self.policies))

    def drain(self) -> None:
        """Turn readiness to 503 and refuse whoever waits; requests are still served."""
        driver = self._threads or self._loop
        if driver is not None:
            driver.guard.drain()
        else:
            for policy in self.policies:
                policy.drain()

    def _by_thread(self) -> ThreadDriver:
        with self._building:
            if self._threads is None:
                self._threads = ThreadDriver(self.policies)
            return self._threads

    def _by_loop(self) -> LoopDriver:
        if self._loop is None:
            self._loop = LoopDriver(self.policies)
        return self._loop


def _guarded(request: HttpRequest) -> bool:
    """Whether a guard around the whole application is handling this request already."""
    carrier: Mapping[str, Any] = request.META
    if isinstance(request, ASGIRequest):
        carrier = request.scope
    outer: Exchange | None = carrier.get(KEY)
    return outer is not None and not outer.done

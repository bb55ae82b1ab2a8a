"""The checks of django-health-check, as checks of ours."""

from __future__ import annotations

import asyncio
import inspect
import pkgutil
from typing import Any, Unpack

from ..config.wording import show
from ..exceptions import ConfigError
from .check import Check, CheckFailed
from .extras import require
from .keywords import CheckOptions


class DjangoHealthCheck(Check):
    """Run a check of django-health-check, of its version 3 or 4, in the background.

    It runs in a thread of its own, never in the one thread that Django's asynchronous views share
    for what is synchronous, and the database connections that it opens are closed after it.

        DjangoHealthCheck("health_check.Cache")                       # version 4
        DjangoHealthCheck(health_check.contrib.psutil.Disk(path="/var"))
        DjangoHealthCheck("health_check.cache.backends.CacheBackend") # version 3

    Args:
        check: an instance, a class, or the dotted path of a class, which is imported at the first
            run and so may be named in Django's settings.
        timeout: seconds; asynchronous checks are cancelled then.
        fail_on_warning: whether a ``ServiceWarning`` is a failure.
        options: those of `Check`; ``critical`` is the check's ``critical_service`` by default.

    Reasons of failure: the kind of its exception, such as ``unavailable``, ``warning``,
    ``unexpected result``; its text may hold secrets and is not shown.

    Raises:
        ConfigError: it is no such check, or the package is missing.
    """

    def __init__(
        self,
        check: object,
        timeout: float = 5.0,
        *,
        fail_on_warning: bool = True,
        **options: Unpack[CheckOptions],
    ) -> None:
        if "critical" not in options:
            options["critical"] = bool(getattr(check, "critical_service", True))
        super().__init__(self._ask, timeout=timeout, **options)
        if isinstance(check, str):
            if not all(part.isidentifier() for part in check.split(".")) or "." not in check:
                raise ConfigError(
                    f"DjangoHealthCheck check must be a class's dotted path, got {show(check)}"
                )
            require(check.partition(".")[0], "DjangoHealthCheck", "django-health-check")
            self._path = check
            self._check: Any = None
        else:
            self._path = ""
            self._check = _instance(check)
        self._fail_on_warning = fail_on_warning

    def _ask(self) -> None:
        from django.db import connections
        from health_check.exceptions import HealthCheckException

        if self._check is None:
            self._check = _instance(pkgutil.resolve_name(self._path))
        try:
            if hasattr(self._check, "check_status"):
                self._check.run_check()
                failures = list(self._check.errors)
            elif inspect.iscoroutinefunction(self._check.run):
                failures = []
                asyncio.run(self._run())
            else:
                failures = []
                self._check.run()
        except HealthCheckException as error:
            failures = [error]
        finally:
            connections.close_all()
        for failure in failures:
            self._judge(failure)

    async def _run(self) -> None:
        from asgiref.sync import ThreadSensitiveContext, sync_to_async
        from django.db import connections

        # What is synchronous inside would else run in the one thread that all views share.
        async with ThreadSensitiveContext():
            try:
                async with asyncio.timeout(self.timeout):
                    await self._check.run()
            except TimeoutError:
                raise CheckFailed("timeout") from None
            finally:
                await sync_to_async(connections.close_all)()

    def _judge(self, failure: Exception) -> None:
        from health_check.exceptions import ServiceWarning

        if self._fail_on_warning or not isinstance(failure, ServiceWarning):
            kind = getattr(failure, "message_type", "error")
            raise CheckFailed(str(kind).lower())


def _instance(check: object) -> Any:
    made = check() if inspect.isclass(check) else check
    if not callable(getattr(made, "check_status", None)) and not callable(
        getattr(made, "run", None)
    ):
        raise ConfigError(
            f"DjangoHealthCheck check must be one of django-health-check, got {show(check)}"
        )
    return made

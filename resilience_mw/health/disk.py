"""Whether there is room on a disk."""

from __future__ import annotations

import os
from typing import Unpack

import psutil

from ..config.wording import show
from ..exceptions import ConfigError
from .check import Check, CheckFailed
from .keywords import CheckOptions


class DiskCheck(Check):
    """Pass while a file system has room for more, and for more files.

    It is asked in a thread, since a network file system whose server is gone answers never.

        DiskCheck("/var/lib/app", min_free=0.1)
        DiskCheck("/tmp", min_free=500_000_000)

    Args:
        path: any file or directory on it.
        min_free: below 1 the share of it, else the bytes, that must be free for users other
            than root.
        timeout: seconds.
        options: those of `Check`.

    Reasons of failure: ``full``, ``no inodes``, ``missing``, ``unreadable``.

    Raises:
        ConfigError: an argument breaks its rule.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = "/",
        min_free: float = 0.05,
        timeout: float = 1.0,
        **options: Unpack[CheckOptions],
    ) -> None:
        super().__init__(self._ask, timeout=timeout, **options)
        try:
            self.path = os.fspath(path)
        except TypeError:
            raise ConfigError(f"DiskCheck path must be a path, got {show(path)}") from None
        if not self.path or "\x00" in self.path:
            raise ConfigError(f"DiskCheck path must be a path, got {show(path)}")
        self.min_free = _positive(min_free)
        self._subject = str(self.path)

    def _ask(self) -> None:
        try:
            usage = psutil.disk_usage(self.path)
            files = os.statvfs(self.path) if hasattr(os, "statvfs") else None
        except FileNotFoundError:
            raise CheckFailed("missing") from None
        except OSError:
            raise CheckFailed("unreadable") from None
        needed = self.min_free if self.min_free >= 1 else self.min_free * usage.total
        if usage.free < needed:
            raise CheckFailed("full")
        # Some file systems make inodes as they go, and say that they have none at all.
        if files is not None and files.f_files > 0 and files.f_favail == 0:
            raise CheckFailed("no inodes")


def _positive(min_free: object) -> float:
    if isinstance(min_free, bool) or not isinstance(min_free, int | float) or not min_free > 0:
        raise ConfigError(
            f"DiskCheck min_free must be a share below 1, or bytes, above 0, got {show(min_free)}"
        )
    return float(min_free)

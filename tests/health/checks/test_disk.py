"""There is room, or there is not."""

from __future__ import annotations

import os

import psutil
import pytest

from resilience_mw.health import DiskCheck
from tests.health.checks.asking import PASSED, ask


def test_room_in_bytes_and_as_a_share(tmp_path):
    """Measured against what the system says is free."""
    usage = psutil.disk_usage(str(tmp_path))
    share = usage.free / usage.total
    assert ask(DiskCheck(tmp_path, min_free=usage.free // 2)) == PASSED
    assert ask(DiskCheck(tmp_path, min_free=usage.free * 2)) == "full"
    assert ask(DiskCheck(tmp_path, min_free=share / 2)) == PASSED
    assert ask(DiskCheck(tmp_path, min_free=(share + 1) / 2)) == "full"


def test_a_path_that_is_missing(tmp_path):
    """Such as a volume that is not mounted; it may come back."""
    path = tmp_path / "volume"
    check = DiskCheck(path, min_free=1)
    assert ask(check) == "missing"
    path.mkdir()
    assert ask(check) == PASSED


def test_a_path_that_cannot_be_asked(tmp_path):
    """A file where a directory should be."""
    (tmp_path / "file").touch()
    assert ask(DiskCheck(tmp_path / "file" / "below", min_free=1)) == "unreadable"


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="has no inodes")
def test_inodes(tmp_path, monkeypatch):
    """Bytes that are free are no use when no file can be made; some systems count none."""
    real = os.statvfs(tmp_path)

    def counting(files: int, free: int) -> os.statvfs_result:
        fields = list(real)
        fields[5:8] = [files, free, free]
        return os.statvfs_result(fields)

    check = DiskCheck(tmp_path, min_free=1)
    monkeypatch.setattr("os.statvfs", lambda _: counting(1000, 0))
    assert ask(check) == "no inodes"
    monkeypatch.setattr("os.statvfs", lambda _: counting(0, 0))
    assert ask(check) == PASSED

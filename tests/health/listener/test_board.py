"""The file that workers share: whose it is, where it is, and what is left of the dead."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.process import free_port
from resilience_mw.exceptions import ConfigError
from resilience_mw.health.listener import file as files
from resilience_mw.health.listener.board import Board, Slot


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "places", lambda: iter([tmp_path / "missing", tmp_path]))


@pytest.fixture
def board() -> Iterator[Board]:
    board = Board(free_port())
    board.join()
    yield board
    board.close()


def in_child(act: object) -> int:
    """Call ``act`` in a forked process, and return the exit code."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = act()  # type: ignore[operator]
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def path_of(port: int, tmp_path: Path) -> Path:
    return tmp_path / f"resilience_mw-{files.LAYOUT}-{os.getuid()}-{files._namespaces()}{port}"


def test_it_is_nobody_elses(board, tmp_path):
    """Only its owner may read or write it."""
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o602])
def test_a_file_that_others_may_touch_is_refused(mode, tmp_path):
    """Somebody may have put it there to write lies into it."""
    port = free_port()
    path = path_of(port, tmp_path)
    path.touch()
    path.chmod(mode)
    with pytest.raises(ConfigError, match="must be a file of nobody else's"):
        Board(port)


def test_a_link_is_not_followed(tmp_path):
    """It could lead to a file of the user's that we would overwrite."""
    port = free_port()
    target = tmp_path / "target"
    target.write_text("precious")
    path_of(port, tmp_path).symlink_to(target)
    with pytest.raises(ConfigError, match="cannot be used"):
        Board(port)
    assert target.read_text() == "precious"


def test_without_a_place_there_is_none(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """The message says where we have looked."""
    missing = tmp_path / "missing"
    monkeypatch.setattr(files, "places", lambda: iter([missing]))
    with pytest.raises(ConfigError, match=f"needs a place for a small file; tried {missing}"):
        Board(free_port())


def test_a_worker_sees_the_others_and_not_itself(board):
    """What it says of itself it knows."""
    board.write(Slot(1, 2, 3.5, started=True, ready=True))
    assert list(board.others()) == []

    def other() -> int:
        board.abandon()
        seen = Board(port)
        seen.join()
        return int(list(seen.others()) != [Slot(1, 2, 3.5, started=True, ready=True)])

    port = _port_of(board)
    assert in_child(other) == 0


def _port_of(board: Board) -> int:
    return int(os.readlink(f"/proc/self/fd/{board._descriptor}").rpartition("-")[2])


def leave_a_dead_worker(board: Board) -> None:
    """Have a ready worker join and end without a word."""
    port = _port_of(board)

    def other() -> int:
        board.abandon()
        mine = Board(port)
        mine.join()
        mine.write(Slot(os.getpid(), 2, ready=True))
        return 0

    assert in_child(other) == 0


def test_only_those_that_matter_are_asked_whether_they_live(board, monkeypatch):
    """That is a system call each, and a busy interpreter is slow to come back from it."""
    asked: list[int] = []
    lock = board._lock

    def count(place: int) -> bool:
        asked.append(place)
        return bool(lock(place))

    monkeypatch.setattr(board, "_lock", count)

    leave_a_dead_worker(board)
    assert list(board.others(lambda slot: not slot.ready)) == []
    assert asked == []
    list(board.others(lambda slot: slot.ready))
    assert len(asked) == 1


def test_the_dead_are_forgotten(board):
    """Their slot is free, and what stood there gone, as soon as somebody looks."""
    leave_a_dead_worker(board)
    assert list(board.others()) == []


def test_only_one_is_elected_and_the_next_after_it(board):
    """For as long as the one lives and does not resign."""
    port = _port_of(board)
    assert board.elect()

    def other() -> int:
        board.abandon()
        mine = Board(port)
        mine.join()
        return int(mine.elect())

    assert in_child(other) == 0
    board.resign()
    assert in_child(other) == 1
    assert board.elect()
    assert board.listener[0] == os.getpid()


def test_a_child_leaves_the_lock_where_it_is(board):
    """Closing what it has inherited takes nothing from its parent."""
    port = _port_of(board)
    assert board.elect()

    def close() -> int:
        board.abandon()
        return 0

    assert in_child(close) == 0

    def other() -> int:
        board.abandon()
        return int(Board(port).elect())

    assert in_child(other) == 0


def test_the_last_one_removes_the_file(tmp_path):
    """Whoever comes at that moment makes a new one, and all later ones share that."""
    port = free_port()
    first, late = Board(port), Board(port)
    first.join()
    path = path_of(port, tmp_path)
    assert path.exists()
    first.close()
    assert not path.exists()
    late.join()
    assert path.exists()
    assert os.path.samestat(path.stat(), os.fstat(late._descriptor))
    late.close()
    assert not path.exists()


def test_a_full_place_is_passed_over(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """Writing into it would kill the process."""
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr(files, "places", lambda: iter([tmp_path, other]))
    reserve = files._reserve

    def full(descriptor: int, size: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(f"{other}/"):
            reserve(descriptor, size)
        else:
            raise OSError("No space left on device")

    monkeypatch.setattr(files, "_reserve", full)
    board = Board(free_port())
    board.join()
    board.close()
    board = Board(free_port())
    board.join()
    assert len(list(other.iterdir())) == 1
    board.close()

"""A store that is a file: whole at every moment, and clear words for what is no such file."""

from __future__ import annotations

import itertools
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from benchmarks.process import ROOT
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import Store, StoreError, open_store
from resilience_mw.rollout.stores.writing import locked


@pytest.fixture(params=["toml", "json"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file that is not there yet, in either form."""
    return tmp_path / f"rollout.{request.param}"


def opened(path: Path) -> Store:
    return open_store(f"file:{path}")


def test_a_file_that_is_not_there_has_no_rules(path: Path):
    """Nothing was set yet: neither an error nor a file made by looking."""
    store = opened(path)
    assert store.load() == {}
    assert store.history() == ()
    assert not path.exists()


def test_readers_never_see_half_a_file(path: Path):
    """While one thread changes, another reads only whole states."""
    store, reader = opened(path), opened(path)
    store.change("favourites", 0, who="anna")
    done = threading.Event()

    def change() -> None:
        for percent in range(60):
            store.change("favourites", percent, who="anna")
        done.set()

    thread = threading.Thread(target=change)
    thread.start()
    seen = []
    while not done.is_set():
        seen.append(reader.load()["favourites"].percent)
    thread.join(10)
    assert seen == sorted(seen)
    assert reader.load()["favourites"] == Share(59)
    leftovers = {entry.name for entry in path.parent.iterdir()} - {path.name}
    assert leftovers == {f"{path.name}.lock", f"{path.name}.history.jsonl"}


def test_the_history_is_bounded(path: Path):
    """It keeps the newest thousand, and lines that are no records do no harm."""
    store = opened(path)
    store.change("favourites", 1, who="anna")
    history = path.with_name(f"{path.name}.history.jsonl")
    line = history.read_text()
    history.write_text("x" * (5 << 20) + "\nno json\n[]\n{}\n" + line * 1500)
    store.change("favourites", 2, who="ben")
    lines = history.read_text().splitlines()
    assert len(lines) == 1000
    assert [change.who for change in store.history(2)] == ["ben", "anna"]
    assert all(
        json.loads(line)["rule"] == "favourites" for line in history.read_text().splitlines()
    )


def test_a_file_that_was_there_and_is_gone_cannot_be_read(path: Path):
    """A deleted file is no empty one: the last known shares are to stand."""
    store = opened(path)
    store.change("favourites", 50, who="anna")
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(StoreError, match="is not there any more"):
        store.load()
    path.write_bytes(content)
    assert store.load() == {"favourites": Share(50)}


def test_a_link_stays_a_link(path: Path, tmp_path: Path):
    """Configuration managers link to the real file: that one is replaced, the link is not."""
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / path.name
    path.symlink_to(real)
    store = opened(path)
    store.change("favourites", 5, who="anna")
    assert path.is_symlink()
    assert opened(real).load() == store.load() == {"favourites": Share(5)}


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_the_mode_of_the_file_stays(path: Path):
    """Who may read the file is decided by whoever made it."""
    store = opened(path)
    store.change("favourites", 5, who="anna")
    path.chmod(0o640)
    store.change("favourites", 6, who="anna")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_change_waits_for_the_lock_and_gives_up(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Somebody who holds the lock for ever is an error in words, and nothing was changed."""
    store = opened(path)
    store.change("favourites", 5, who="anna")
    monkeypatch.setattr("resilience_mw.rollout.stores.file.LOCK_TIMEOUT", 0.2)
    with (
        locked(path.with_name(f"{path.name}.lock"), 1.0),
        pytest.raises(StoreError, match=r"locked by another process for 0\.2 s"),
    ):
        store.change("favourites", 6, who="anna")
    assert store.change("favourites", 7, who="anna").before == Share(5)


def test_a_file_system_without_locks(path: Path, monkeypatch: pytest.MonkeyPatch):
    """To change a file unlocked could lose another's change: it is not changed."""

    def no_locks(descriptor: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("resilience_mw.rollout.stores.writing._try", no_locks)
    with pytest.raises(StoreError, match="cannot be changed: no locks available"):
        opened(path).change("favourites", 5, who="anna")
    assert not path.exists()


def test_what_cannot_be_read(path: Path):
    """A link in a circle stands for all that the system refuses: its words, in one line."""
    path.symlink_to(path.name)
    with pytest.raises(StoreError, match="cannot be read: too many levels"):
        opened(path).load()
    path.unlink()
    history = path.with_name(f"{path.name}.history.jsonl")
    history.mkdir()
    with pytest.raises(StoreError, match="has no history: is a directory"):
        opened(path).history()


def test_what_is_no_file(tmp_path: Path):
    """A pipe is not read, which would wait for ever, and a huge file is not taken in."""
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    with pytest.raises(StoreError, match="is no regular file"):
        opened(pipe).load()
    huge = tmp_path / "huge.toml"
    huge.write_text("#" * ((1 << 20) + 1))
    with pytest.raises(StoreError, match="is larger than 1048576 bytes"):
        opened(huge).load()
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(StoreError, match="is no UTF-8"):
        opened(binary).load()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root becomes another")
def test_what_root_changed_stays_the_workers_to_change():
    """The command ran as root; a worker, another user, still reads, locks and changes the file."""
    nobody = 65534
    # Not below pytest's own directory, which is closed to others.
    with tempfile.TemporaryDirectory() as directory:
        os.chown(directory, nobody, nobody)
        path = Path(directory) / "rollout.toml"
        path.touch(0o600)
        os.chown(path, nobody, nobody)
        umask = os.umask(0o077)
        try:
            opened(path).change("favourites", 6, who="root")
        finally:
            os.umask(umask)
        os.setegid(nobody)
        os.seteuid(nobody)
        try:
            with pytest.raises(PermissionError):
                os.open("/", os.O_WRONLY | os.O_TMPFILE)
            opened(path).change("favourites", 0, held=True, who="guard")
        finally:
            os.seteuid(0)
            os.setegid(0)
        assert opened(path).load() == {"favourites": Share(0, held=True)}
        assert len(opened(path).history()) == 2
        assert path.stat().st_uid == nobody
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_directory_that_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch):
    """A full disk is an error in words; nothing was changed, and no file is left over."""
    store = opened(path)
    store.change("favourites", 5, who="anna")
    before = {entry.name: entry.read_bytes() for entry in path.parent.iterdir()}

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="cannot be changed: no space left on device"):
        store.change("favourites", 0, who="anna")
    assert {entry.name: entry.read_bytes() for entry in path.parent.iterdir()} == before


KILLED = """
import sys
from resilience_mw.rollout.stores import open_store
store = open_store(sys.argv[1])
percent = store.load()["favourites"].percent
while True:
    percent = (percent + 1) % 100
    store.change("favourites", percent, who="killed")
    print("x", flush=True)
"""


def test_whoever_changes_it_may_be_killed(path: Path):
    """At any moment: the file is whole, nobody has its lock, and the history explains it."""
    store = opened(path)
    store.change("favourites", 0, who="anna")
    for number in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, f"file:{path}"], cwd=ROOT, stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            for _ in range(3 + number):
                assert writer.stdout.readline() == b"x\n"
            writer.kill()
        found = opened(path).load()["favourites"]
        assert store.change("favourites", number, who="anna").before == found
    changes = store.history(1000)[::-1]
    assert len(changes) > 20
    assert all(old.after == new.before for old, new in itertools.pairwise(changes))
    leftovers = {entry.name for entry in path.parent.iterdir()} - {path.name}
    assert leftovers == {f"{path.name}.lock", f"{path.name}.history.jsonl"}


def test_a_file_that_became_a_directory_costs_no_descriptors(path: Path):
    """A follower looks at it four times a second."""
    store = opened(path)
    store.change("cart", 5, who="anna")
    path.unlink()
    path.mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        with pytest.raises(StoreError, match="is no regular file"):
            store.load()
    assert len(os.listdir("/proc/self/fd")) < before + 25

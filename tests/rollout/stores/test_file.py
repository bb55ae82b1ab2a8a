"""A store that is a file: changes from many processes, edits by hand, and what goes wrong."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import threading
from pathlib import Path

import pytest

from resilience_mw import ConfigError
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import RuleHeld, Store, StoreError, open_store
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


def test_a_change_is_seen_by_others_and_recorded(path: Path):
    """Another process reads the share; the history has time, who, from, to and why."""
    store = opened(path)
    first = store.change("favourites", 2, who="anna", why="two servers")
    second = store.change("favourites", 33.33, who="ben")
    assert opened(path).load() == {"favourites": Share(33.33)}
    assert opened(path).history() == (second, first)
    assert (first.before, first.after) == (None, Share(2))
    assert (second.before, second.after) == (Share(2), Share(33.33))
    assert (first.who, first.why, second.why) == ("anna", "two servers", "")
    assert 0 <= second.time - first.time < 60
    assert opened(path).history(1) == (second,)


def test_a_held_rule_rises_only_after_it_was_cleared(path: Path):
    """The guard's hold is refused by the store itself, whoever asks, until a person ends it."""
    store = opened(path)
    store.change("favourites", 50, who="anna")
    store.change("favourites", 0, held=True, who="guard", why="errors 5.1 % against 0.2 %")
    with pytest.raises(RuleHeld, match="favourites is held at 0 by the guard; clear it first"):
        store.change("favourites", 10, who="anna")
    store.change("favourites", 0, who="anna", why="lowering is always allowed")
    assert store.load() == {"favourites": Share(0, held=True)}
    cleared = store.clear_hold("favourites", who="anna", why="fixed")
    assert cleared is not None
    assert cleared.after == Share(0)
    assert store.clear_hold("favourites", who="anna") is None
    assert store.change("favourites", 10, who="anna").after == Share(10)


def test_a_hold_can_be_ended_and_the_share_set_at_once(path: Path):
    """`held=False` is both steps in one."""
    store = opened(path)
    store.change("favourites", 0, held=True, who="guard")
    store.change("favourites", 10, held=False, who="anna")
    assert store.load() == {"favourites": Share(10)}


def test_a_second_hold_is_no_change(path: Path):
    """All servers' guards may trip at once: the history has the first one's figures."""
    store = opened(path)
    first = store.change("favourites", 0, held=True, who="guard", why="first")
    again = store.change("favourites", 0, held=True, who="guard", why="second")
    assert again.before == again.after == Share(0, held=True)
    assert store.history() == (first,)


def test_rules_are_announced_only_where_there_are_none(path: Path):
    """A server's start tells the store its rules and changes no share that somebody set."""
    store = opened(path)
    store.change("favourites", 50, who="anna")
    rules = {"favourites": Share(2), "cart": Share(1)}
    store.announce(rules, who="web-17", why="as in the code")
    store.announce(rules, who="web-18", why="as in the code")
    assert store.load() == {"favourites": Share(50), "cart": Share(1)}
    assert [change.who for change in store.history()] == ["web-17", "anna"]


@pytest.mark.parametrize("percent", [-1, 100.01, float("nan"), True, "2", 0.001, 10**400])
def test_a_percent_that_is_none(path: Path, percent: object):
    """One line names the option, the rule and the value; nothing is written."""
    with pytest.raises(ConfigError, match=r"^percent must be (between|in steps)"):
        opened(path).change("favourites", percent, who="anna")  # type: ignore[arg-type]
    assert not path.exists()


@pytest.mark.parametrize("rule", ["", "a\nb", "x" * 101, "\x1b[31m"])
def test_a_name_that_is_none(path: Path, rule: str):
    """Names are printed, and written into files: they must be printable and short."""
    with pytest.raises(ConfigError, match=r"^rule must be 1 to 100 printable characters"):
        opened(path).change(rule, 1, who="anna")


def test_a_reason_cannot_forge_a_record(path: Path):
    """Line ends and control characters in who and why are blanks."""
    store = opened(path)
    store.change("cart", 1, who="an\na", why='x\n{"time": 0}\x1b[2J' + "y" * 10_000)
    (change,) = store.history()
    assert change.who == "an a"
    assert change.why.startswith('x {"time": 0} [2J')
    assert len(change.why) < 600


def write(path: str, who: str, start: int) -> None:
    store = open_store(f"file:{path}")
    for number in range(start, start + 20):
        store.change(f"rule-{number % 4}", number % 100, who=who, why=str(number))


def test_processes_and_threads_that_change_at_once_lose_nothing(path: Path):
    """Four processes and two threads, one file: the history has every change, in order."""
    method = multiprocessing.get_context("spawn")
    workers: list[multiprocessing.process.BaseProcess | threading.Thread] = [
        method.Process(target=write, args=(str(path), f"process-{n}", n * 20)) for n in range(4)
    ]
    workers += [
        threading.Thread(target=write, args=(str(path), f"thread-{n}", 80 + n * 20))
        for n in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    store = opened(path)
    changes = store.history(1000)[::-1]
    assert sorted(int(change.why) for change in changes) == list(range(120))
    last: dict[str, Share] = {}
    for change in changes:
        assert change.before == last.get(change.rule)
        last[change.rule] = change.after
    assert store.load() == last
    leftovers = {entry.name for entry in path.parent.iterdir()} - {path.name}
    assert leftovers == {f"{path.name}.lock", f"{path.name}.history.jsonl"}


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


def test_the_history_is_bounded(path: Path):
    """It keeps the newest thousand, and lines that are no records do no harm."""
    store = opened(path)
    store.change("favourites", 1, who="anna")
    history = path.with_name(f"{path.name}.history.jsonl")
    line = history.read_text()
    history.write_text("no json\n[]\n{}\n" + line * 1500)
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

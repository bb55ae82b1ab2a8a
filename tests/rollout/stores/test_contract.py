"""What every store promises, on a real file of either kind and on a real Redis."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from uuid import uuid4

import pytest

from resilience_mw import ConfigError
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import Overtaken, RuleHeld, open_store
from tests.rollout.redis_server import RedisServer


@pytest.fixture(params=["toml", "json", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer) -> str:
    """A store without rules."""
    if request.param == "redis":
        return f"{redis_server.url}?prefix={uuid4()}"
    return f"file:{tmp_path / f'rollout.{request.param}'}"


def test_a_change_is_seen_by_others_and_recorded(url: str):
    """Another process reads the share; the history has time, who, from, to and why."""
    store = open_store(url)
    first = store.change("favourites", 2, who="anna", why="two servers")
    second = store.change("favourites", 33.33, who="ben")
    assert open_store(url).load() == {"favourites": Share(33.33)}
    assert open_store(url).history() == (second, first)
    assert (first.before, first.after) == (None, Share(2))
    assert (second.before, second.after) == (Share(2), Share(33.33))
    assert (first.who, first.why, second.why) == ("anna", "two servers", "")
    assert 0 <= second.time - first.time < 60
    assert open_store(url).history(1) == (second,)


def test_a_held_rule_rises_only_after_it_was_cleared(url: str):
    """The guard's hold is refused by the store itself, whoever asks, until a person ends it."""
    store = open_store(url)
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


def test_a_hold_can_be_ended_and_the_share_set_at_once(url: str):
    """`held=False` is both steps in one."""
    store = open_store(url)
    store.change("favourites", 0, held=True, who="guard")
    store.change("favourites", 10, held=False, who="anna")
    assert store.load() == {"favourites": Share(10)}


def test_a_second_hold_is_no_change(url: str):
    """All servers' guards may trip at once: the history has the first one's figures."""
    store = open_store(url)
    first = store.change("favourites", 0, held=True, who="guard", why="first")
    again = store.change("favourites", 0, held=True, who="guard", why="second")
    assert again.before == again.after == Share(0, held=True)
    assert store.history() == (first,)


def test_rules_are_announced_only_where_there_are_none(url: str):
    """A server's start tells the store its rules and changes no share that somebody set."""
    store = open_store(url)
    store.change("favourites", 50, who="anna")
    rules = {"favourites": Share(2), "cart": Share(1)}
    store.announce(rules, who="web-17", why="as in the code")
    store.announce(rules, who="web-18", why="as in the code")
    assert store.load() == {"favourites": Share(50), "cart": Share(1)}
    assert [change.who for change in store.history()] == ["web-17", "anna"]


@pytest.mark.parametrize("percent", [-1, 100.01, float("nan"), True, "2", 0.001, 10**400])
def test_a_percent_that_is_none(url: str, percent: object):
    """One line names the option, the rule and the value; nothing is written."""
    with pytest.raises(ConfigError, match=r"^percent must be (between|in steps)"):
        open_store(url).change("favourites", percent, who="anna")  # type: ignore[arg-type]
    assert open_store(url).load() == {}


def test_a_hold_is_at_zero(url: str):
    """Nothing else can be held."""
    with pytest.raises(ConfigError, match=r"^percent must be 0 for a rule that is held, got 5$"):
        open_store(url).change("favourites", 5, held=True, who="guard")


def test_a_change_that_was_meant_for_another_share(url: str):
    """`expected` is what the caller saw; whoever was faster is not overwritten."""
    store = open_store(url)
    store.change("favourites", 2, expected=None, who="anna")
    with pytest.raises(Overtaken, match=r"^favourites was changed meanwhile$"):
        store.change("favourites", 50, expected=Share(1), who="anna")
    with pytest.raises(Overtaken):
        store.change("favourites", 50, expected=None, who="anna")
    store.change("favourites", 50, expected=Share(2), who="anna")
    assert store.load() == {"favourites": Share(50)}


@pytest.mark.parametrize("rule", ["", "a\nb", "x" * 101, "\x1b[31m"])
def test_a_name_that_is_none(url: str, rule: str):
    """Names are printed, and written into files: they must be printable and short."""
    with pytest.raises(ConfigError, match=r"^rule must be 1 to 100 printable characters"):
        open_store(url).change(rule, 1, who="anna")


def test_a_reason_cannot_forge_a_record(url: str):
    """Line ends and control characters in who and why are blanks."""
    store = open_store(url)
    store.change("cart", 1, who="an\na", why='x\n{"time": 0}\x1b[2J' + "y" * 10_000)
    (change,) = store.history()
    assert change.who == "an a"
    assert change.why.startswith('x {"time": 0} [2J')
    assert len(change.why) < 600


def write(url: str, who: str, start: int) -> None:
    store = open_store(url)
    for number in range(start, start + 20):
        store.change(f"rule-{number % 4}", number % 100, who=who, why=str(number))


def test_processes_and_threads_that_change_at_once_lose_nothing(url: str):
    """Four processes and two threads, one file: the history has every change, in order."""
    method = multiprocessing.get_context("spawn")
    workers: list[multiprocessing.process.BaseProcess | threading.Thread] = [
        method.Process(target=write, args=(url, f"process-{n}", n * 20)) for n in range(4)
    ]
    workers += [
        threading.Thread(target=write, args=(url, f"thread-{n}", 80 + n * 20)) for n in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    store = open_store(url)
    changes = store.history(1000)[::-1]
    assert sorted(int(change.why) for change in changes) == list(range(120))
    last: dict[str, Share] = {}
    for change in changes:
        assert change.before == last.get(change.rule)
        last[change.rule] = change.after
    assert store.load() == last

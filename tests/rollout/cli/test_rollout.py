"""`resilience-mw rollout`: what it shows, changes, asks and refuses, on real stores."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click.testing
import pytest

from benchmarks.process import ROOT
from resilience_mw.cli.program import program
from resilience_mw.cli.program import run as run_program
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import Store, open_store
from tests.rollout.redis_server import RedisServer

VARIABLE = "RESILIENCE_ROLLOUT_STORE"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(params=["file", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store without rules."""
    if request.param == "file":
        yield f"file:{tmp_path / 'rollout.toml'}"
    else:
        with RedisServer() as server:
            yield server.url


@pytest.fixture
def store(url: str) -> Store:
    return open_store(url)


@pytest.fixture
def run(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    """Run `resilience-mw rollout` and return its exit code and what it wrote."""
    monkeypatch.setenv(VARIABLE, url)
    monkeypatch.setattr(sys, "stdin", open("/dev/null"))  # noqa: SIM115

    def command(*arguments: str) -> tuple[int, str, str]:
        code = run_program(["rollout", *arguments])
        return code, *capsys.readouterr()

    yield command
    sys.stdin.close()


def test_the_way_up_and_back(run: Run, store: Store):
    """Set, show, roll back: each is one line, and the history has all of it."""
    empty = f"{store.name} ({store.why_empty()})"
    assert run("show") == (0, f"no rules in {empty}\n", "")
    assert run("history") == (0, f"no changes in {empty}\n", "")
    assert run("set", "favourites", "2", "--new", "--who", "anna", "--why", "two servers") == (
        0,
        "favourites: not in the store -> 2 %\n",
        "",
    )
    assert run("set", "favourites", "26.5%") == (0, "favourites: 2 % -> 26.5 %\n", "")
    assert store.load() == {"favourites": Share(26.5)}
    code, out, _ = run("show")
    assert code == 0
    assert re.fullmatch(
        r"RULE +SHARE +LAST CHANGE +WHO +WHY\nfavourites +26\.5 % +\d{4}-\S+Z +\S+@\S+\n", out
    )
    assert run("rollback", "favourites", "--why", "errors") == (
        0,
        "favourites: 26.5 % -> 0 %\n",
        "",
    )
    code, out, _ = run("history")
    head, *rows = out.splitlines()
    assert head.split() == ["TIME", "WHO", "RULE", "FROM", "TO", "WHY"]
    assert [re.split(r"  +", row)[2:] for row in rows] == [
        ["favourites", "26.5 %", "0 %", "errors"],
        ["favourites", "2 %", "26.5 %"],
        ["favourites", "not in the store", "2 %", "two servers"],
    ]
    assert re.split(r"  +", rows[2])[1] == "anna"
    assert len(run("history", "--limit", "1")[1].splitlines()) == 2


def test_the_forms_for_programs(run: Run, store: Store):
    """Every command has its answer in JSON."""
    (change,) = json.loads(run("set", "favourites", "2", "--new", "--format", "json")[1])
    assert set(change) == {"time", "who", "rule", "from", "to", "held", "why"}
    assert (change["rule"], change["from"], change["to"]) == ("favourites", None, 2)
    assert json.loads(run("history", "--format", "json")[1]) == [change]
    assert json.loads(run("show", "--format", "json")[1]) == [
        {"rule": "favourites", "percent": 2, "held": False, "changed": change}
    ]
    assert json.loads(run("rollback", "--format", "json")[1])[0]["to"] == 0
    assert json.loads(run("rollback", "--format", "json")[1]) == []
    assert json.loads(run("clear", "favourites", "--format", "json")[1]) == []


def test_a_roll_back_of_everything(run: Run, store: Store):
    """Without a rule, all of them; those at 0 are left alone."""
    store.change("favourites", 100, who="anna")
    store.change("cart", 5, who="anna")
    store.change("search", 0, who="anna")
    code, out, err = run("rollback")
    assert (code, err) == (0, "")
    assert sorted(out.splitlines()) == ["cart: 5 % -> 0 %", "favourites: 100 % -> 0 %"]
    assert set(store.load().values()) == {Share(0)}
    assert run("rollback") == (0, f"every rule in {store.name} is at 0 already\n", "")
    assert len(store.history()) == 5


@pytest.mark.parametrize(
    ("before", "after", "asks"),
    [(0, 25, False), (0, 25.01, True), (2, 50, True), (25, 50, False), (100, 0, False)],
)
def test_a_large_step_up_needs_a_yes(
    run: Run, store: Store, before: float, after: float, asks: bool
):
    """More than 25 points up are asked about; where nobody can answer, nothing is done."""
    store.change("favourites", before, who="anna")
    code, _, err = run("set", "favourites", str(after))
    assert code == int(asks)
    if asks:
        assert err.endswith(
            "resilience-mw: a step of over 25 points needs --yes where nobody can answer\n"
        )
        assert store.load() == {"favourites": Share(before)}
        assert run("set", "favourites", str(after), "--yes")[0] == 0
    assert store.load() == {"favourites": Share(after)}


@pytest.mark.parametrize(("answer", "percent"), [("y", 50), ("n", 2), ("", 2)])
def test_the_answer_counts(store: Store, url: str, answer: str, percent: float):
    """Yes does it, no and nothing do not."""
    store.change("favourites", 2, who="anna")
    arguments = ["rollout", "set", "favourites", "50", "--store", url]
    result = click.testing.CliRunner().invoke(program, arguments, input=f"{answer}\n")
    assert "favourites: 2 % -> 50 %, in one step? [y/N]:" in result.output
    assert store.load() == {"favourites": Share(percent)}
    assert (result.exit_code == 0) == (percent == 50)


def test_a_held_rule_needs_a_person(run: Run, store: Store):
    """`set` says since when and why it is held; `clear`, or `--clear`, ends that."""
    store.change("favourites", 0, held=True, who="guard", why="errors 5.1 % against 0.2 %")
    code, out, err = run("set", "favourites", "2")
    assert (code, out) == (1, "")
    assert re.fullmatch(
        r"resilience-mw: favourites is held at 0 since \S+Z \(errors 5\.1 % against 0\.2 %\); "
        r"once it is mended: --clear, or `rollout clear favourites`\n",
        err,
    )
    assert "0 %, held" in run("show")[1]
    assert run("rollback", "favourites") == (0, "favourites: 0 %, held -> 0 %, held\n", "")
    assert run("clear", "favourites") == (0, "favourites: 0 %, held -> 0 %\n", "")
    assert run("clear", "favourites") == (0, "favourites was not held\n", "")
    store.change("favourites", 0, held=True, who="guard")
    assert run("set", "favourites", "2", "--clear") == (0, "favourites: 0 %, held -> 2 %\n", "")
    assert store.load() == {"favourites": Share(2)}


class Interfering(Store):
    """A real store, in which somebody else changes a rule between our look and our change."""

    def __init__(self, real: Store, meanwhile: Callable[[], object]) -> None:
        self.real = real
        self.name = real.name
        self.load = real.load  # type: ignore[method-assign]
        self.history = real.history  # type: ignore[method-assign]
        self.meanwhile = [meanwhile]

    def load(self):
        raise NotImplementedError

    def history(self, limit=20):
        raise NotImplementedError

    def transact(self, *arguments):
        if self.meanwhile:
            self.meanwhile.pop()()
        return self.real.transact(*arguments)


def test_a_roll_back_of_somebody_else_is_not_undone_unseen(
    run: Run, store: Store, monkeypatch: pytest.MonkeyPatch
):
    """The step was small when it was asked for, and is large now: it is asked about."""
    store.change("favourites", 90, who="anna")
    between = Interfering(store, lambda: store.change("favourites", 0, who="ben", why="errors"))
    monkeypatch.setattr("resilience_mw.cli.shares.open_store", lambda url: between)
    code, _, err = run("set", "favourites", "100")
    assert code == 1
    assert err.startswith("favourites was changed meanwhile\n")
    assert "favourites: 0 % -> 100 %, in one step?" in err
    assert store.load() == {"favourites": Share(0)}


@pytest.mark.parametrize("before", [None, 0])
def test_a_guard_that_trips_meanwhile_is_not_overruled(
    run: Run, store: Store, monkeypatch: pytest.MonkeyPatch, before: float | None
):
    """The rule was free when the command looked, and is held now: nothing is changed."""
    if before is not None:
        store.change("favourites", before, who="anna")
    between = Interfering(store, lambda: store.change("favourites", 0, held=True, who="guard"))
    monkeypatch.setattr("resilience_mw.cli.shares.open_store", lambda url: between)
    code, _, err = run("set", "favourites", "5", "--new")
    assert code == 1
    assert "favourites is held at 0 since" in err
    assert "(guard)" in err
    assert store.load() == {"favourites": Share(0, held=True)}


def test_two_people_at_once_lose_nothing(url: str, store: Store):
    """Eight real commands at the same time: the history has all of them, none over a stale one."""
    base = [
        sys.executable,
        "-m",
        "resilience_mw",
        "rollout",
        "--store",
        url,
        "set",
        "--new",
        "favourites",
    ]
    commands = [
        subprocess.Popen(
            [*base, str(n), "--who", f"person-{n}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for n in range(1, 9)
    ]
    outputs = [command.communicate(timeout=100)[0] for command in commands]
    assert [command.returncode for command in commands] == [0] * 8, outputs
    changes = store.history()
    assert sorted(change.who for change in changes) == [f"person-{n}" for n in range(1, 9)]
    assert all(new.before == old.after for new, old in itertools.pairwise(changes))
    assert store.load() == {"favourites": changes[0].after}

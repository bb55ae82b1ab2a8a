"""`resilience-mw rollout` on a store or a rule that is not the one that was meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resilience_mw.cli.program import run as run_program
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import open_store
from tests.rollout.redis_server import RedisServer


@pytest.fixture(params=["file", "redis"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str, str]]:
    """The URL of a store, one that a typing error makes of it, and why that has no rules."""
    if request.param == "file":
        yield f"file:{tmp_path}/rollout.toml", f"file:{tmp_path}/rolout.toml", "no such file"
        return
    with RedisServer() as server:
        right, wrong = (f"{server.url}?prefix={prefix}" for prefix in ("shop", "shpo"))
        yield right, wrong, "no such key: {shpo}:shares"


def test_a_roll_back_in_another_store_is_an_error(
    stores: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
):
    """Nothing was taken back, and nothing looks as if it was."""
    right, wrong, why = stores
    open_store(right).change("favourites", 100, who="anna")
    for arguments in ([], ["--format", "json"]):
        assert run_program(["rollout", "rollback", "--store", wrong, *arguments]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"resilience-mw: no rules in {wrong} ({why}): nothing was taken back")
        assert err.count("\n") == 1
    assert open_store(right).load() == {"favourites": Share(100)}
    assert open_store(wrong).load() == {}


def test_a_roll_back_in_another_directory_says_where_it_looked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """The absolute path, though a relative one was given."""
    monkeypatch.chdir(tmp_path)
    assert run_program(["rollout", "rollback", "--store", "file:rollout.toml"]) == 1
    told = f"no rules in file:{tmp_path}/rollout.toml (no such file): nothing was taken back"
    assert told in capsys.readouterr().err
    (tmp_path / "rollout.toml").touch()
    assert run_program(["rollout", "rollback", "--store", "file:rollout.toml"]) == 1
    assert "(an empty file): nothing was taken back" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["rollback", "favorites"], ["set", "favorites", "5"], ["clear", "favorites"]]
)
def test_a_rule_that_the_store_does_not_have_is_an_error(
    stores: tuple[str, str, str], arguments: list[str], capsys: pytest.CaptureFixture[str]
):
    """The name that was meant is in it, and nothing is written."""
    right, wrong, why = stores
    open_store(right).change("favourites", 100, who="anna")
    open_store(right).change("cart", 0, who="anna")
    assert run_program(["rollout", *arguments, "--store", right]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    told = f"resilience-mw: favorites is not in {right}: nothing was changed; "
    assert err.startswith(f"{told}did you mean favourites?")
    assert run_program(["rollout", *arguments, "--store", wrong]) == 1
    assert f"favorites is not in {wrong} ({why}): nothing was changed" in capsys.readouterr().err
    assert open_store(right).load() == {"favourites": Share(100), "cart": Share(0)}
    assert open_store(wrong).load() == {}


@pytest.mark.parametrize(
    "arguments", [["rollback", "cart", "--new"], ["set", "cart", "0", "--yes"]]
)
def test_a_rule_that_is_in_the_code_alone_can_be_written(
    stores: tuple[str, str, str], arguments: list[str], capsys: pytest.CaptureFixture[str]
):
    """By whoever says so."""
    right, _, _ = stores
    assert run_program(["rollout", *arguments, "--store", right]) == 0
    assert capsys.readouterr() == ("cart: not in the store -> 0 %\n", "")
    assert open_store(right).load() == {"cart": Share(0)}


def test_a_new_rule_needs_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Which of those that the store does not have should it be?"""
    url = f"file:{tmp_path}/rollout.toml"
    assert run_program(["rollout", "rollback", "--new", "--store", url]) == 2
    assert capsys.readouterr().err == "resilience-mw: --new needs the name of a RULE\n"


def test_a_silent_store_changes_nothing_by_being_looked_at(capsys: pytest.CaptureFixture[str]):
    """Only a change may have been made or not."""
    with RedisServer() as server, server.admin() as admin:
        admin.client_pause(2000)
        assert run_program(["rollout", "show", "--store", server.url]) == 1
        assert capsys.readouterr().err == (f"resilience-mw: {server.url} cannot be used: timeout\n")


def test_a_share_that_makes_no_sense_keeps_no_other_one_up(capsys: pytest.CaptureFixture[str]):
    """What can be taken back is; the error is about the rest."""
    with RedisServer() as server, server.admin() as admin:
        store = open_store(server.url)
        store.change("favourites", 50, who="anna")
        admin.hset("{resilience_mw:rollout}:shares", "cart", "half")
        for printed in ("favourites: 50 % -> 0 %\n", ""):
            assert run_program(["rollout", "rollback", "--store", server.url]) == 1
            out, err = capsys.readouterr()
            assert out == printed
            assert err == (
                f"resilience-mw: {server.url} has no share for rule cart: got 'half': "
                "that one was not taken back\n"
            )
        assert admin.hget("{resilience_mw:rollout}:shares", "favourites") in ("0", b"0")

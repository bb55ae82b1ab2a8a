"""`resilience-mw rollout` in the hands of somebody who mistypes, and on stores that fail."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from resilience_mw.cli.program import run as run_program
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import open_store
from tests.rollout.redis_server import RedisServer

VARIABLE = "RESILIENCE_ROLLOUT_STORE"


def test_the_store_is_named_in_three_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """After the command, before it, or in the environment; the nearest counts."""
    urls = [f"file:{tmp_path / name}.toml" for name in ("a", "b", "c")]
    for number, url in enumerate(urls):
        open_store(url).change(f"rule-{number}", 1, who="anna")
    monkeypatch.setenv(VARIABLE, urls[2])
    for arguments, rule in (
        (["show"], "rule-2"),
        (["--store", urls[1], "show"], "rule-1"),
        (["--store", urls[1], "show", "--store", urls[0]], "rule-0"),
    ):
        assert run_program(["rollout", *arguments, "--format", "json"]) == 0
        assert [row["rule"] for row in json.loads(capsys.readouterr().out)] == [rule]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["show"],
            2,
            "name the store: --store file:/etc/shop/rollout.toml, or RESILIENCE_ROLLOUT_STORE",
        ),
        (["show", "--store", "rollout.toml"], 2, "store must be file:PATH.toml, file:PATH.json"),
        (["sow"], 2, "unknown rollout command sow; did you mean show?"),
        (["set", "a"], 2, "Missing argument 'PERCENT'"),
        (["set", "a", "101", "--store", "S"], 2, "percent must be between 0 and 100, got 101"),
        (["set", "a", "half", "--store", "S"], 2, "percent must be between 0 and 100, got 'half'"),
        (["set", "a", "nan", "--store", "S"], 2, "percent must be between 0 and 100, got nan"),
        (["set", "a", "0.001", "--store", "S"], 2, "percent must be in steps of 0.01, got 0.001"),
        (["set", "a\nb", "1", "--store", "S"], 2, "rule must be 1 to 100 printable characters"),
        (["rollback", "", "--store", "S"], 2, "rule must be 1 to 100 printable characters"),
        (["history", "--limit", "0", "--store", "S"], 2, "Invalid value for '--limit'"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    """The line names what is wrong, and nothing is written anywhere."""
    place = f"file:{tmp_path / 'rollout.toml'}"
    given = [place if argument == "S" else argument for argument in arguments]
    assert run_program(["rollout", *given]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"resilience-mw: {message}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_reached(capsys: pytest.CaptureFixture[str]):
    """Code 1, one line, and no password in it."""
    with RedisServer("--requirepass", "right") as server:
        url = server.url.replace("redis://", "redis://:wrong@")
        assert run_program(["rollout", "rollback", "--store", url]) == 1
        assert capsys.readouterr() == (
            "",
            f"resilience-mw: {server.url} cannot be used: wrong user or password\n",
        )
        port = server.port
    assert run_program(["rollout", "show", "--store", f"redis://127.0.0.1:{port}"]) == 1
    assert "cannot be used: refused" in capsys.readouterr().err


def test_a_change_without_an_answer_may_have_been_made(capsys: pytest.CaptureFixture[str]):
    """After a timeout nobody knows: it says where to look rather than that nothing was done."""
    with RedisServer() as server, server.admin() as admin:
        open_store(server.url).change("favourites", 2, who="anna")
        admin.client_pause(2000)
        assert run_program(["rollout", "clear", "favourites", "--store", server.url]) == 1
        assert capsys.readouterr().err == (
            f"resilience-mw: {server.url} cannot be used: timeout; "
            "`rollout history` tells whether it was made\n"
        )


def test_the_way_back_is_tried_again(capsys: pytest.CaptureFixture[str]):
    """A server that is silent for longer than one timeout does not stop a roll-back."""
    with RedisServer() as server, server.admin() as admin:
        open_store(server.url).change("favourites", 2, who="anna")
        admin.client_pause(900)
        assert run_program(["rollout", "rollback", "favourites", "--store", server.url]) == 0
        assert open_store(server.url).load() == {"favourites": Share(0)}
    assert capsys.readouterr() == ("favourites: 2 % -> 0 %\n", "")


def test_a_file_that_is_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """It says where; the file stays for its author."""
    path = tmp_path / "rollout.toml"
    path.write_text("favourites = 5\ncart = \n")
    assert run_program(["rollout", "rollback", "--store", f"file:{path}"]) == 1
    assert "rollout.toml is no TOML: Invalid value (at line 2," in capsys.readouterr().err
    assert path.read_text() == "favourites = 5\ncart = \n"


def test_what_others_wrote_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Control characters in a history that somebody forged are shown escaped."""
    url = f"file:{tmp_path / 'rollout.toml'}"
    open_store(url).change("favourites", 2, who="anna", why="plain")
    history = tmp_path / "rollout.toml.history.jsonl"
    history.write_text(history.read_text().replace("plain", "\\u001b[2Jgone"))
    assert run_program(["rollout", "history", "--store", url]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2Jgone" in out


@pytest.mark.parametrize("moment", ["1e400", "1e18", "-1", "NaN"])
def test_a_time_that_is_none_is_no_record(
    moment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Whatever else stands in the history is shown."""
    url = f"file:{tmp_path / 'rollout.toml'}"
    store = open_store(url)
    store.change("favourites", 2, who="anna", why="first")
    store.change("favourites", 3, who="anna", why="second")
    history = tmp_path / "rollout.toml.history.jsonl"
    first, second = history.read_text().splitlines()
    start, _, rest = second.partition(",")
    history.write_text(f"{first}\n{start.partition(':')[0]}: {moment},{rest}\n")
    for command in ("history", "show"):
        assert run_program(["rollout", command, "--store", url]) == 0
        out = capsys.readouterr().out
        assert "first" in out
        assert "second" not in out


def test_the_person_behind_sudo_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """The history is about people: root is nobody."""
    url = f"file:{tmp_path / 'rollout.toml'}"
    monkeypatch.setenv("SUDO_USER", "anna")
    assert run_program(["rollout", "set", "favourites", "2", "--new", "--store", url]) == 0
    assert open_store(url).history()[0].who.startswith("anna@")


def test_somebody_without_a_name_is_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """A container's user need not have a name."""

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 1000")

    url = f"file:{tmp_path / 'rollout.toml'}"
    monkeypatch.delenv("SUDO_USER", raising=False)
    monkeypatch.setattr("getpass.getuser", nameless)
    assert run_program(["rollout", "set", "favourites", "2", "--new", "--store", url]) == 0
    assert re.match(r"(\d+|unknown)@", open_store(url).history()[0].who)


class Terminal(io.StringIO):
    """A person who gives no answer but Ctrl-D."""

    def isatty(self) -> bool:
        return True


def test_a_person_who_gives_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """At a terminal there is somebody to answer: it was aborted, and `--yes` is not the advice."""
    url = f"file:{tmp_path / 'rollout.toml'}"
    monkeypatch.setattr("sys.stdin", Terminal())
    assert run_program(["rollout", "set", "favourites", "100", "--new", "--store", url]) == 1
    err = capsys.readouterr().err
    assert err.endswith("resilience-mw: aborted\n")
    assert "--yes" not in err
    assert open_store(url).load() == {}


def test_the_way_back_is_not_tried_for_ever(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """A server that stays silent is an error in the end."""
    monkeypatch.setattr("resilience_mw.cli.rollouts.rollback.TRIES", 2)
    with RedisServer() as server, server.admin() as admin:
        admin.client_pause(5000)
        assert run_program(["rollout", "rollback", "favourites", "--store", server.url]) == 1
    assert "cannot be used: timeout; " in capsys.readouterr().err

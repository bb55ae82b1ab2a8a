"""The program itself: commands, version, one-line errors, and life without click."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from dataclasses import asdict

import click
import pytest
from click.shell_completion import ShellComplete

from resilience_mw.cli import main
from resilience_mw.cli.program import program, run, version
from resilience_mw.config import as_json, markdown, options, table


def test_options_lists_every_option(capsys: pytest.CaptureFixture[str]):
    """The three formats are those of the configuration package; the table is the default."""
    for arguments, expected in (
        ([], table(options())),
        (["--format", "table"], table(options())),
        (["--format", "markdown"], markdown(options())),
        (["--format", "json"], as_json(options())),
    ):
        assert main(["options", *arguments]) == 0
        assert capsys.readouterr().out == f"{expected}\n"


def test_version(capsys: pytest.CaptureFixture[str]):
    """`--version` prints one line."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"resilience-mw, version {version()}\n"


def test_version_of_an_installed_and_of_a_bare_checkout(monkeypatch: pytest.MonkeyPatch):
    """The version is the distribution's; without one it is plainly unknown."""
    monkeypatch.setattr(importlib.metadata, "version", {"resilience_mw": "1.2.3"}.__getitem__)
    assert version() == "1.2.3"

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert version() == "0+unknown"


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]):
    """A bare call explains itself and is no error."""
    assert main([]) == 0
    bare = capsys.readouterr().out
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == bare
    assert "options" in bare


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["optoins"], "unknown command optoins; did you mean options?"),
        (["--", "--optoins"], "unknown command --optoins; did you mean options?"),
        (["--versio"], "unknown option --versio; did you mean --version?"),
        (["-q"], "unknown option -q; --help lists those that there are"),
        (["options", "--fromat", "json"], "unknown option --fromat; did you mean --format?"),
        (["options", "--format", "xml"], "Invalid value for '--format': 'xml' is not one of"),
        (["options", "more"], "Got unexpected extra argument (more)"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    """Usage errors say what is wrong in one line on stderr, with code 2."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"resilience-mw: {message}")
    assert err.count("\n") == 1


def test_a_megabyte_of_usage_is_one_short_line(capsys: pytest.CaptureFixture[str]):
    """Whatever is typed, the error stays readable."""
    assert main(["x\n" * 500_000]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert len(err) < 600


def test_an_interrupted_command_says_so(capsys: pytest.CaptureFixture[str]):
    """Ctrl-C ends a command with code 1 and no traceback."""

    @click.command()
    def wait() -> None:
        raise KeyboardInterrupt

    assert run([], wait) == 1
    assert capsys.readouterr().err.endswith("resilience-mw: aborted\n")


def test_other_errors_of_click_keep_their_code(capsys: pytest.CaptureFixture[str]):
    """A command that fails with a message of its own is one line and click's code 1."""

    @click.command()
    def fail() -> None:
        raise click.ClickException("no such app")

    assert run([], fail) == 1
    assert capsys.readouterr().err == "resilience-mw: no such app\n"


def test_a_bug_is_not_hidden():
    """Only mistakes of the user become one line; anything else keeps its traceback."""

    @click.command()
    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run([], broken)


def test_shell_completion_of_half_a_command():
    """Completing a word that is no command yet finds the commands, and raises nothing."""
    completion = ShellComplete(program, {}, "resilience-mw", "_RESILIENCE_MW_COMPLETE")
    assert "options" in [item.value for item in completion.get_completions([], "op")]
    assert completion.get_completions(["optoins"], "--form") == []


def test_without_click_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """A missing extra is one line and code 1; any other missing module is a bug that shows."""
    monkeypatch.delitem(sys.modules, "resilience_mw.cli.program")
    monkeypatch.setitem(sys.modules, "click", None)
    assert main([]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "resilience-mw needs click: pip install 'resilience-mw[cli]'\n"
    monkeypatch.setitem(sys.modules, "resilience_mw.cli.program", None)
    with pytest.raises(ModuleNotFoundError):
        main([])


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_as_a_process():
    """`python -m resilience_mw` prints the options and ends with 0."""
    done = process("-m", "resilience_mw", "options", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [asdict(row) for row in options()]


def test_as_a_process_with_wrong_usage():
    """The exit code and the one line reach the shell."""
    done = process("-m", "resilience_mw", "optoins")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "resilience-mw: unknown command optoins; did you mean options?\n"


def test_as_a_process_without_click():
    """A real interpreter without click ends with 1 and one line."""
    done = process(
        "-c",
        "import sys; sys.modules['click'] = None; "
        "from resilience_mw.cli import main; sys.exit(main())",
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "resilience-mw needs click: pip install 'resilience-mw[cli]'\n"

"""The flags that the options make, on a small command: good values, bad ones, unknown names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click
import pytest

from resilience_mw.cli.flags import option_flags
from resilience_mw.cli.program import run
from resilience_mw.config import Config, Limit, options, resolve
from tests.config.spellings import GOOD, OPTIONS, SPELLED, argument, every_bad


@click.command()
@click.argument("app")
@option_flags()
@click.option("--port", type=int, default=8000)
def serve(app: str, port: int, flags: Mapping[str, str]) -> None:
    """Print what was understood."""
    resolved = resolve(flags=flags, environ={})
    given = sorted(resolved.config.given)
    sources = {dotted: resolved.sources[dotted] for dotted in given}
    click.echo(
        json.dumps({"app": app, "port": port, "sources": sources, **asdict(resolved.config)})
    )


def understood(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run `serve`, which must succeed, and return what it printed."""
    assert run(arguments, serve) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run `serve`, which must fail with code 2 and one line, and return the line's message."""
    assert run(arguments, serve) == 2
    out, err = capsys.readouterr()
    assert out == ""
    line, end = err.removeprefix("resilience-mw: "), err[-1:]
    assert end == "\n"
    assert line.count("\n") == 1
    return line.rstrip("\n")


@pytest.mark.parametrize("dotted", SPELLED)
def test_every_option_has_its_flag(dotted: str, capsys: pytest.CaptureFixture[str]):
    """A flag means what its option means in Python."""
    value, text = GOOD[dotted]
    option = OPTIONS[dotted]
    flag = option.no_flag if value is False else option.flag
    typed = [flag] if isinstance(value, bool) else [flag, text]
    printed = understood(["app:app", *typed], capsys)
    expected = json.loads(json.dumps(asdict(argument(dotted, value))))
    assert {section: printed[section] for section in expected} == expected
    assert printed["sources"] == {dotted: f"flag {flag}"}
    assert understood([*typed, "app:app", "--port", "1"], capsys)["port"] == 1


def test_flags_left_out_are_not_given(capsys: pytest.CaptureFixture[str]):
    """Without flags nothing counts as given, booleans and lists included."""
    assert understood(["app:app"], capsys)["sources"] == {}


def test_flags_equal_to_the_default_are_given(capsys: pytest.CaptureFixture[str]):
    """A flag typed counts, whatever it says."""
    typed = ["--backpressure-enabled", "--limit-exempt", "", "--runner-drain-delay=3"]
    assert understood(["app:app", *typed], capsys)["sources"] == {
        "backpressure.enabled": "flag --backpressure-enabled",
        "limit.exempt": "flag --limit-exempt",
        "runner.drain_delay": "flag --runner-drain-delay",
    }


def test_a_repeated_list_adds_up(capsys: pytest.CaptureFixture[str]):
    """Several flags and commas are one list; of any other flag the last one counts."""
    typed = ["--limit-exempt", "/a,/b", "--limit-exempt", "/c"]
    assert understood(["app:app", *typed], capsys)["limit"]["exempt"] == ["/a", "/b", "/c"]
    typed = ["--backpressure-enabled", "--no-backpressure-enabled"]
    assert understood(["app:app", *typed], capsys)["backpressure"]["enabled"] is False


@every_bad(lambda value, text: text is not None)
def test_wrong_values(
    dotted: str, rule: str, value: Any, text: str, capsys: pytest.CaptureFixture[str]
):
    """One line with the flag, the rule and the value, and exit code 2."""
    option = OPTIONS[dotted]
    if option.rule.kind == "boolean":
        message = refused(["app:app", f"{option.flag}={text}"], capsys)
        assert message == f"Option '{option.flag}' does not take a value."
    else:
        message = refused(["app:app", option.flag, text], capsys)
        assert message.startswith(f"{option.flag}: {dotted} {rule}, got ")


@pytest.mark.parametrize("dotted", SPELLED)
def test_unknown_flags_suggest_the_nearest(dotted: str, capsys: pytest.CaptureFixture[str]):
    """One line with the flag that was probably meant, and exit code 2."""
    flag = OPTIONS[dotted].flag
    message = refused(["app:app", f"{flag}x", "1"], capsys)
    assert message == f"unknown option {flag}x; did you mean {flag}?"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["a", "--limit-max-concurrent-requests", "-1"],
            "--limit-max-concurrent-requests: limit.max_concurrent_requests must be >= 0, got -1",
        ),
        (
            ["a", "--backpressure-max-limit", "3", "--backpressure-min-limit", "7"],
            "--backpressure-min-limit, --backpressure-max-limit:"
            " backpressure.min_limit must be <= backpressure.max_limit (3), got 7",
        ),
        (
            ["a", "--max-limit", "3"],
            "unknown option --max-limit; did you mean --backpressure-max-limit?",
        ),
        (
            ["a", "--no-backpressure-enable"],
            "unknown option --no-backpressure-enable; did you mean --no-backpressure-enabled?",
        ),
        (["a", "--limit-exempt"], "Option '--limit-exempt' requires an argument."),
        ([], "Missing argument 'APP'."),
        (["a", "b\nc"], "Got unexpected extra argument (b c)"),
    ],
)
def test_usage_errors(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    """Each mistake at the command line is one line that says what to change."""
    assert refused(arguments, capsys) == message


def test_help_lists_every_flag_with_its_default(capsys: pytest.CaptureFixture[str]):
    """`--help` has each flag once, in the order of declaration."""
    assert run(["--help"], serve) == 0
    text = " ".join(capsys.readouterr().out.split())
    places = [text.index(f"{row.flag} ") for row in options() if row.flag and row.type != "boolean"]
    assert places == sorted(places)
    assert "--backpressure-enabled / --no-backpressure-enabled" in text
    assert "--limit-max-concurrent-requests REQUESTS Refuse at once above it" in text
    assert "[default: 1.0 (aimd), 0.1 (adaptive)]" in text
    assert "[default: True]" in text
    assert "--backpressure-law [adaptive|aimd] How" in text
    assert "--deadline-header HEADER_NAME_OR_NONE A trusted" in text


def test_flags_of_some_sections(capsys: pytest.CaptureFixture[str]):
    """A command may offer fewer flags, and take its context as usual."""

    @click.command()
    @option_flags([Limit])
    @click.pass_context
    def small(ctx: click.Context, flags: Mapping[str, str]) -> int:
        click.echo(f"{ctx.info_name} {dict(flags)}")
        return 7

    assert run(["--limit-exempt", "/a"], small) == 7
    assert capsys.readouterr().out == "resilience-mw {'limit.exempt': '/a'}\n"
    assert run(["--runner-drain-delay", "1"], small) == 2


def test_flags_cover_the_whole_config():
    """Every option that has text has a flag on `serve`."""
    offered = {name for parameter in serve.params for name in parameter.opts}
    assert {option.flag for option in OPTIONS.values()} & offered == {
        option.flag for option in SPELLED.values()
    }
    assert len(OPTIONS) == sum(len(vars(part)) - 1 for part in Config().parts())


@pytest.mark.parametrize("command", [["run"], ["check"], ["export", "kubernetes"]])
def test_help_begins_with_what_is_the_commands_own(command, capsys):
    """Then come the declared options, one heading for each section."""
    assert run([*command, "--help"]) == 0
    own, *parts = capsys.readouterr().out.partition("\nOptions:\n")[2].split("\n\n")
    assert "--port" in own
    assert "--config-file" in own
    assert "--help" in own
    assert "\n  APP" not in own
    assert "--limit-max-concurrent-requests" not in own
    headings = [part.split(",")[0] for part in parts]
    assert headings == ["Limit", "Backpressure", "Deadline", "Health", "Runner"]
    assert "--limit-max-concurrent-requests" in parts[0]

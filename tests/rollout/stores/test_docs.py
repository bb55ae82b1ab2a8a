"""The page about stores says nothing that is not so."""

from __future__ import annotations

import re

import click

from benchmarks.filling import with_outputs
from benchmarks.process import ROOT
from resilience_mw.cli import rollouts
from resilience_mw.cli.group import ModuleGroup
from resilience_mw.cli.program import program
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores.redis import CONNECT_TIMEOUT, PREFIX, TIMEOUT
from resilience_mw.rollout.stores.text import parsed

PAGE = (ROOT / "docs" / "rollout-store.md").read_text()


def test_its_examples_run_and_print_what_is_shown():
    """Each Python block runs in a directory of its own, and prints the block below it."""
    # The first shows an app that would follow a file in the working directory.
    _, _, rest = PAGE.partition("## Which store")
    assert with_outputs(rest) == rest


def test_the_file_it_shows_is_one():
    """The TOML on the page has the shares that it says."""
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert parsed(text, "toml") == {"cart": Share(5), "favourites": Share(0, held=True)}


def test_the_commands_are_those_that_there_are():
    """Each command, with its arguments and flags, and no other."""
    context = click.Context(program)
    group = program.get_command(context, "rollout")
    assert isinstance(group, ModuleGroup)
    assert group.package is rollouts
    shown = dict(
        re.findall(
            r"^resilience-mw rollout (\w+) ?(.*)$",
            PAGE.partition("## The command")[2],
            re.MULTILINE,
        )
    )
    assert set(shown) == set(group.list_commands(context))
    for name, arguments in shown.items():
        command = group.get_command(context, name)
        assert command is not None
        flags = {flag for option in command.params for flag in option.opts if flag[:2] == "--"}
        assert set(re.findall(r"--\w+", arguments)) <= flags
        assert {"--store", "--format"} <= flags


def test_its_numbers_are_those_of_the_code():
    """Timeouts and keys."""
    assert f"gives up after {CONNECT_TIMEOUT:g} s of connecting or {TIMEOUT:g} s" in PAGE
    assert f"`{{{PREFIX}}}:shares`" in PAGE

"""What docs/rollout-incident.md tells people to type prints what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.process import ROOT
from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import Store, open_store

PAGE = (ROOT / "docs" / "rollout-incident.md").read_text()


def steps(text: str) -> list[tuple[str, str]]:
    """Return each command, and what is shown below it."""
    blocks = "".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL))
    return re.findall(r"^\$ (resilience-mw .*)\n((?:(?!\$ ).*\n)*)", blocks, re.MULTILINE)


def plain(text: str) -> list[list[str]]:
    """Return the words of each line, without what is another at each time and place."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    return [re.sub(r"\S+@\S+", "WHO", line).split() for line in text.splitlines()]


def before(store: Store) -> None:
    """The roll-out as it was until something went wrong."""
    store.change("favourites", 2, who="anna@ops")
    store.change("cart", 5, who="anna@ops")
    store.change("favourites", 25, who="anna@ops", why="a quiet week")
    store.change("cart", 0, held=True, who="guard", why="errors: failed 9.43 % of 53 requests")


def walk(text: str, folder: Path) -> list[str]:
    commands = []
    for command, shown in steps(text):
        ran = subprocess.run(
            command.replace("/etc/shop", str(folder)),
            shell=True,
            cwd=folder,
            env={
                **os.environ,
                "RESILIENCE_ROLLOUT_STORE": f"file:{folder}/rollout.toml",
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        printed = ran.stdout.replace(str(folder), "/etc/shop")
        assert plain(printed) == plain(shown), command
        assert ran.returncode == int(shown.startswith("resilience-mw: ")), command
        commands.append(command.split()[2])
    return commands


def test_the_page_goes_as_shown(tmp_path: Path):
    """Command by command; then once more with the file gone."""
    store = open_store(f"file:{tmp_path}/rollout.toml")
    before(store)
    head, heading, away = PAGE.partition("## When the store is away")
    assert heading
    commands = walk(head, tmp_path)
    assert set(commands) == {"rollback", "show", "history", "clear", "set"}
    assert store.load() == {"favourites": Share(0), "cart": Share(1)}
    (tmp_path / "rollout.toml").unlink()
    assert walk(away, tmp_path) == ["rollback"]
    assert open_store(store.name).load() == {"favourites": Share(0)}

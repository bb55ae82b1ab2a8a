"""`resilience-mw export nginx` and `export haproxy`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from resilience_mw.cli import main
from resilience_mw.rollout.stores import open_store

STACKS = ["--old", "127.0.0.1:7001", "--new", "127.0.0.1:6001"]
SHOP = "tests.rollout.export.shop:"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Run an export; returns the code and what it printed, the error if there is one."""

    def export(*arguments: str) -> tuple[int, str]:
        code = main(["export", *arguments])
        out, err = capsys.readouterr()
        return code, err or out

    return export


def valid(kind: str, text: str, folder: Path) -> None:
    """Have the proxy itself read a configuration."""
    exported = folder / "exported.conf"
    exported.write_text(text)
    own = folder / "nginx.conf"
    own.write_text(f"pid {folder}/pid;\nevents {{}}\nhttp {{ include {exported}; }}\n")
    commands = {
        "nginx": ["nginx", "-t", "-p", str(folder), "-c", str(own)],
        "haproxy": ["haproxy", "-c", "-f", str(exported)],
    }
    ran = subprocess.run(commands[kind], capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
@pytest.mark.parametrize("app", ["app", "wsgi"])
@pytest.mark.parametrize("more", [(), ("--any-server",)], ids=["one server", "any server"])
def test_the_proxy_accepts_what_is_printed(run, kind, app, more, tmp_path):
    """Of ASGI and WSGI apps, with the middleware somewhere inside."""
    code, text = run(kind, SHOP + app, *STACKS, "--listen", "127.0.0.1:18080", *more)
    assert code == 0
    assert "favourites: 2 % by server." in text
    assert ("the server 'web-1'" in text.lower()) is not bool(more)
    if shutil.which(kind) is None:
        pytest.skip(f"{kind} is not installed")
    valid(kind, text, tmp_path)


def test_nginx_has_a_location_and_a_split(run):
    """As people write them."""
    _, text = run("nginx", SHOP + "app", *STACKS)
    assert "    location = /item_collect.htm {" in text
    assert 'split_clients "cart $resilience_user_cart"' in text
    assert "    20% resilience_new;" in text
    assert "    server 127.0.0.1:6001;" in text
    assert "The proxy's hash is not ours" in text


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_shares_come_from_a_store(run, kind, tmp_path):
    """The rules from the code, and what is in force from where it was set."""
    store = tmp_path / "rollout.toml"
    open_store(f"file:{store}").change("cart", 7.5, who="anna")
    code, text = run(kind, SHOP + "late", *STACKS, "--store", f"file:{store}")
    assert code == 0
    assert "cart: 7.5 % by user." in text
    assert ("7.5%" if kind == "nginx" else "lt 750") in text


def test_two_roll_outs_may_share_a_proxy(run):
    """All names begin with one that can be chosen."""
    for kind in ("nginx", "haproxy"):
        _, text = run(kind, SHOP + "app", *STACKS, "--name", "shop_b")
        code = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        assert "shop_b_old" in text
        assert "resilience" not in "\n".join(code)


WRONG = [
    (["tests.rollout.export.shop:stack", *STACKS], "one RolloutMiddleware in it, got none"),
    ([SHOP + "twice", *STACKS], "one RolloutMiddleware in it, got 2"),
    ([SHOP + "late", *STACKS], "does not know its shares yet; name their store with --store"),
    ([SHOP + "app", "--old", "here", "--new", "b:1"], "old must be host:port, got 'here'"),
    ([SHOP + "app", "--old", "a:1", "--new", "b:0"], "new must be host:port, got 'b:0'"),
    ([SHOP + "app", "--old", "a:1", "--new", "b;:1"], "new must be host:port, got 'b;:1'"),
    ([SHOP + "app", *STACKS, "--name", "9"], "name must be up to 31 of a-z, 0-9"),
    ([SHOP + "app", *STACKS, "--listen", "80; evil"], "listen must be PORT or HOST:PORT"),
    ([SHOP + "app", *STACKS, "--any-server", "--server-name", "x"], "exclude each other"),
    ([SHOP + "app", *STACKS, "--store", "what"], "store must be file:"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: str(value)[-40:])
@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_mistakes_are_told_on_one_line(run, kind, arguments, message):
    """With an exit code that is not 0, and nothing that could be taken for a configuration."""
    code, text = run(kind, *arguments)
    assert code != 0
    assert message in text
    assert text.count("\n") == 1

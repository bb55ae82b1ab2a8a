"""`resilience-mw export nginx` and `export haproxy`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from resilience_mw.cli import main
from resilience_mw.rollout.stores import open_store
from tests.rollout.export.shop import stored

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


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_a_middleware_that_is_not_made_yet_has_a_store(run, kind, tmp_path, monkeypatch):
    """Frameworks make it when they start: the store is taken from what they will give it."""
    store = open_store(f"file:{tmp_path}/rollout.toml")
    entry = stored.user_middleware[0]
    monkeypatch.setitem(entry.kwargs, "store", store.name)
    code, text = run(kind, SHOP + "stored", *STACKS)
    assert (code, "cart: 20 % by user." in text) == (0, True)
    assert "# Not in the store, and so as in the code: favourites, cart." in text
    store.change("cart", 7.5, who="anna")
    code, text = run(kind, SHOP + "stored", *STACKS)
    assert (code, "cart: 7.5 % by user." in text) == (0, True)
    assert f"the shares are those of {store.name}." in text
    assert "# Not in the store, and so as in the code: favourites." in text
    monkeypatch.setitem(entry.kwargs, "store", f"file:{tmp_path}")
    assert run(kind, SHOP + "stored", *STACKS)[0] == 2


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_without_a_store_the_shares_are_those_in_the_code(run, kind):
    """Of a middleware that is not made yet, too."""
    code, text = run(kind, SHOP + "late", *STACKS)
    assert (code, "cart: 20 % by user." in text) == (0, True)


def test_a_share_that_is_of_another_app_is_none_of_this_one(run, tmp_path):
    """A store that was named by mistake is not taken for one that says nothing else."""
    store = open_store(f"file:{tmp_path}/rollout.toml")
    store.change("other", 7.5, who="anna")
    code, text = run("nginx", SHOP + "app", *STACKS, "--store", store.name)
    assert (code, text) == (
        1,
        f"resilience-mw: no share of favourites, cart in {store.name}\n",
    )


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
    ([SHOP + "app", "--old", "here", "--new", "b:1"], "old must be host:port, got 'here'"),
    ([SHOP + "app", "--old", "a:1", "--new", "b:0"], "new must be host:port, got 'b:0'"),
    ([SHOP + "app", "--old", "a:1", "--new", "b;:1"], "new must be host:port, got 'b;:1'"),
    ([SHOP + "app", *STACKS, "--name", "9"], "name must be up to 31 of a-z, 0-9"),
    ([SHOP + "app", *STACKS, "--listen", "80; evil"], "listen must be PORT or HOST:PORT"),
    ([SHOP + "app", *STACKS, "--any-server", "--server-name", "x"], "exclude each other"),
    ([SHOP + "app", *STACKS, "--store", "what"], "store must be file:"),
    (
        [SHOP + "app", *STACKS, "--store", "file:nosuch.toml"],
        f"no share of favourites, cart in file:{os.getcwd()}/nosuch.toml (no such file)",
    ),
    (
        [SHOP + "app", "--old", "a:1", "--new", "http://a:1/"],
        "new must be another address than old, got 'a:1' twice",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: str(value)[-40:])
@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_mistakes_are_told_on_one_line(run, kind, arguments, message):
    """With an exit code that is not 0, and nothing that could be taken for a configuration."""
    code, text = run(kind, *arguments)
    assert code != 0
    assert message in text
    assert text.count("\n") == 1


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_an_app_that_a_function_makes(run, kind):
    """As `resilience-mw run` takes it."""
    code, text = run(kind, f"{SHOP}make", "--factory", *STACKS)
    assert code == 0
    assert text.replace(":make", ":app") == run(kind, f"{SHOP}app", *STACKS)[1]

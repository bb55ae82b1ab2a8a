"""The file's text: what people write by hand is read, kept, or refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resilience_mw.core.rollout import Share
from resilience_mw.rollout.stores import StoreError, open_store
from resilience_mw.rollout.stores.text import changed, parsed

BY_HAND = """\
# Our roll-out.
cart = 5        # one page
search = { percent = 1.5, held = false }

[favourites]    # the seed
percent = 2     # two servers
# held = true

["item list"]
held = true
percent = 0
"""

SHARES = {
    "cart": Share(5),
    "search": Share(1.5),
    "favourites": Share(2),
    "item list": Share(0, held=True),
}


def test_toml_by_hand():
    """A rule is a number, or a table of percent and held."""
    assert parsed(BY_HAND, "toml") == SHARES


def test_json_by_hand():
    """The same in JSON."""
    text = '{"cart": 5, "favourites": {"percent": 0, "held": true}}'
    assert parsed(text, "json") == {"cart": Share(5), "favourites": Share(0, held=True)}
    assert parsed("", "json") == parsed("", "toml") == {}


@pytest.mark.parametrize(
    ("rule", "share", "old", "new"),
    [
        ("favourites", Share(25), "percent = 2     #", "percent = 25     #"),
        (
            "favourites",
            Share(0, held=True),
            "percent = 2     # two servers\n",
            "percent = 0     # two servers\nheld = true\n",
        ),
        ("cart", Share(0.25), "cart = 5 ", "cart = 0.25 "),
        ("cart", Share(0, held=True), "cart = 5 ", "cart = { percent = 0, held = true } "),
        ("search", Share(7), "{ percent = 1.5, held = false }", "7"),
        (
            "item list",
            Share(3),
            "held = true\npercent = 0\n",
            "held = false\npercent = 3\n",
        ),
        ("new one", Share(1), "percent = 0\n", 'percent = 0\n\n["new one"]\npercent = 1\n'),
    ],
)
def test_a_change_leaves_the_rest_of_the_text(rule: str, share: Share, old: str, new: str):
    """Comments, order and the way a rule is written stay as they are."""
    assert changed(BY_HAND, "toml", rule, share) == BY_HAND.replace(old, new)


def test_a_form_we_do_not_edit_is_written_anew():
    """The way back must not fail because of a dotted key: comments go, the shares stay."""
    text = "favourites.percent = 5 # dotted\ncart = 1\n"
    after = changed(text, "toml", "favourites", Share(0))
    assert parsed(after, "toml") == {"favourites": Share(0), "cart": Share(1)}


def test_a_text_without_an_end_of_line_and_with_windows_ends():
    """Whatever the editor left at the line's end."""
    assert changed("[cart]\npercent = 1", "toml", "cart", Share(2)) == "[cart]\npercent = 2\n"
    text = "[cart]\r\npercent = 1 # one\r\n"
    assert changed(text, "toml", "cart", Share(2)) == "[cart]\r\npercent = 2 # one\r\n"


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("toml", "favourites = ", "is no TOML: "),
        ("toml", "[favourites]\npercent = 1\n[favourites]\npercent = 2", "is no TOML: "),
        ("toml", "favourites = 101", "rule favourites: percent must be between 0 and 100, got 101"),
        ("toml", "favourites = 'half'", "rule favourites: percent must be between 0 and 100"),
        ("toml", "favourites = nan", "rule favourites: percent must be between 0 and 100"),
        ("toml", "[a]\nprecent = 5", "must be a table of percent and held, got precent"),
        ("toml", "[a]\nheld = true", "must be a table of percent and held, got no percent"),
        ("toml", "[a]\npercent = 1\nheld = 1", "rule a: held must be true or false, got 1"),
        ("toml", '"" = 5', "rule must be 1 to 100 printable characters"),
        ("json", "[]", "must hold one table of rules, got"),
        ("json", '{"a": 1, "a": 2}', "is no JSON: a name is there twice"),
        ("json", "[" * 100_000, "is no JSON: "),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(kind: str, text: str, message: str):
    """All or nothing: a typo must not move a part of the traffic."""
    with pytest.raises(StoreError) as caught:
        parsed(text, kind)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_held_rule_is_at_zero_whatever_stands_beside_it():
    """`held` without `percent = 0` is still held at 0."""
    assert parsed("[a]\npercent = 5\nheld = true", "toml") == {"a": Share(0, held=True)}


def test_an_edit_by_hand_is_in_the_history(tmp_path: Path):
    """The next change finds a share that no record explains, and records it as well."""
    path = tmp_path / "rollout.toml"
    store = open_store(f"file:{path}")
    store.change("cart", 1, who="anna")
    path.write_text(path.read_text().replace("percent = 1", "percent = 9"))
    store.change("cart", 3, who="ben")
    told = [(c.who, c.before, c.after, c.why) for c in store.history()]
    assert told == [
        ("ben", Share(9), Share(3), ""),
        ("unknown", Share(1), Share(9), "found in the file"),
        ("anna", None, Share(1), ""),
    ]


def test_a_broken_file_is_not_overwritten(tmp_path: Path):
    """A change of a file that cannot be read is refused, and the file stays for its author."""
    path = tmp_path / "rollout.toml"
    path.write_text("favourites = \n")
    with pytest.raises(StoreError, match=r"rollout\.toml is no TOML: "):
        open_store(f"file:{path}").change("favourites", 1, who="anna")
    assert path.read_text() == "favourites = \n"


names = st.text(min_size=1, max_size=20).filter(str.isprintable)
shares = st.one_of(
    st.integers(0, 10_000).map(lambda places: Share(places / 100)), st.just(Share(0.0, held=True))
)


@pytest.mark.parametrize("kind", ["toml", "json"])
@given(start=st.dictionaries(names, shares, max_size=4), rule=names, share=shares)
def test_whatever_was_written_is_read_again(
    kind: str, start: dict[str, Share], rule: str, share: Share
):
    """One rule changes, all others stay, for any names."""
    text = ""
    for name, value in start.items():
        text = changed(text, kind, name, value)
    assert parsed(changed(text, kind, rule, share), kind) == {**start, rule: share}

"""Flags and a file that come through the environment."""

from __future__ import annotations

import contextlib
import os

import pytest

from resilience_mw import Config, Deadline, Limit
from resilience_mw.config import flags_in, hand_down, handed_down, resolve, section_from_kwargs
from resilience_mw.exceptions import ConfigError

SECTIONS = Config.sections()


def test_flags_beat_code_and_say_that_they_are_flags():
    """Wherever somebody resolves options, that of a single middleware included."""
    with handed_down(SECTIONS, {"limit.max_concurrent_requests": "9"}):
        resolved = resolve(Config(limit=Limit(max_concurrent_requests=3)))
        assert section_from_kwargs(Limit, {"max_concurrent_requests": 3}).given
    assert resolved.config.limit.max_concurrent_requests == 9
    source = resolved.sources["limit.max_concurrent_requests"]
    assert source == "flag --limit-max-concurrent-requests"


def test_variables_that_were_no_flags_stay_below_code():
    """A child's flags are added to those of its parent."""
    environ = {"RESILIENCE_DEADLINE_TIMEOUT": "7", "RESILIENCE_LIMIT_EXEMPT": "/a"}
    hand_down(environ, SECTIONS, {"limit.exempt": "/b"})
    hand_down(environ, SECTIONS, {"limit.max_concurrent_requests": "5"})
    given = Config(deadline=Deadline(timeout=2), limit=Limit(exempt=("/c",)))
    config = resolve(given, environ=environ).config
    assert config.deadline.timeout == 2
    assert config.limit.exempt == ("/b",)
    assert flags_in(environ, SECTIONS) == {
        "limit.exempt": "/b",
        "limit.max_concurrent_requests": "5",
    }


def test_nothing_is_left_behind():
    """Not in this process's environment, whatever happened."""
    before = dict(os.environ)
    with contextlib.suppress(RuntimeError), handed_down(SECTIONS, {"limit.exempt": "/a"}, "x"):
        assert os.path.isabs(os.environ["RESILIENCE_CONFIG_FILE"])
        raise RuntimeError
    assert dict(os.environ) == before


def test_a_file_is_below_variables_and_above_settings(tmp_path):
    """It belongs to a deployment, as variables do; settings belong to the code."""
    path = tmp_path / "options.toml"
    path.write_text("[limit]\nmax_concurrent_requests = 5\nexempt = ['/file']\n")
    environ = {"RESILIENCE_CONFIG_FILE": str(path), "RESILIENCE_LIMIT_EXEMPT": "/env"}
    settings = {"limit": {"max_concurrent_requests": 6}, "deadline": {"timeout": 4}}
    resolved = resolve(settings=settings, environ=environ)
    assert resolved.config.limit.max_concurrent_requests == 5
    assert resolved.config.limit.exempt == ("/env",)
    assert resolved.config.deadline.timeout == 4
    assert resolved.sources["limit.max_concurrent_requests"] == f"file {path}"


@pytest.mark.parametrize(
    ("text", "rule"),
    [(None, "cannot be read"), ("[limit", "is not valid TOML"), ("[limit]\nx = 1", "limit.x")],
)
def test_a_bad_file_is_named(tmp_path, text, rule):
    """Missing, broken, or with an option that does not exist."""
    path = tmp_path / "options.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=rule) as caught:
        resolve(environ={"RESILIENCE_CONFIG_FILE": str(path)})
    assert str(path) in str(caught.value)

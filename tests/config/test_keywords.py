"""The keywords of the middlewares and the options they stand for."""

from __future__ import annotations

import typing
from typing import Any

import pytest

from resilience_mw.config import Config, keywords, options_of

SECTIONS = {name: kind for name, kind in Config.sections().items() if name != "runner"}


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_keywords_are_the_options(section):
    """No option is missing, none is invented, and each has the type of the option."""
    declared = typing.get_type_hints(section)
    known: dict[str, Any] = {name: declared[name] for name in options_of(section)}
    assert typing.get_type_hints(getattr(keywords, f"{section.__name__}Keywords")) == known

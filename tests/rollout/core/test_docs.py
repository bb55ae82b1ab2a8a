"""The page about roll-outs leaves nothing out."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import pytest

from resilience_mw import RolloutRule, asgi, wsgi
from resilience_mw.core.rollout import VariantSnapshot

PAGE = (Path(__file__).parents[3] / "docs" / "rollout.md").read_text()


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(VariantSnapshot)])
def test_every_count_is_explained(field: str):
    """In the table of fields."""
    assert f"`{field}`" in PAGE.partition("| field of `old`")[2]


@pytest.mark.parametrize(
    "option", [field.name for field in dataclasses.fields(RolloutRule) if field.name != "name"]
)
def test_every_option_of_a_rule_is_shown(option: str):
    """In the table of rules."""
    assert f"{option}=" in PAGE.partition("## Rules")[2].partition("##")[0]


@pytest.mark.parametrize("option", sorted(inspect.signature(asgi.RolloutMiddleware).parameters))
def test_every_option_of_the_middleware_is_shown(option: str):
    """And the two middlewares have the same."""
    assert option in PAGE
    assert option in inspect.signature(wsgi.RolloutMiddleware).parameters

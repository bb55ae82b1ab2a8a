"""Set Django up once, and give each test a handler of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import django
import pytest
from django.test import override_settings

with pytest.MonkeyPatch.context() as patch:
    # Only for the moment: servers that other tests start have settings of their own.
    patch.setenv("DJANGO_SETTINGS_MODULE", "tests.django.project.settings")
    django.setup()

Configure = Callable[..., None]


@pytest.fixture
def configure() -> Iterator[Configure]:
    """Change settings until the end of the test: `configure(RESILIENCE={...})`."""
    changed: list[Any] = []

    def change(**settings: object) -> None:
        override = override_settings(**settings)
        override.enable()
        changed.append(override)

    yield change
    for override in reversed(changed):
        override.disable()


@pytest.fixture(autouse=True)
def _nothing_held() -> Iterator[None]:
    """Let go of every view, whatever became of the test."""
    from tests.django.project import urls

    urls.seen.clear()
    urls.held.clear()
    yield
    for event in urls.held.values():
        event.set()

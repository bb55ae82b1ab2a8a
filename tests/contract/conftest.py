"""The drivers that the one suite runs on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .django_drivers import DjangoAsync, DjangoSync
from .drivers import Asgi, AsgiUvloop, Driver, Wsgi

DRIVERS = {kind.name: kind for kind in (Asgi, AsgiUvloop, Wsgi, DjangoSync, DjangoAsync)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on every driver, or on those that its `drivers` marker names."""
    if "driver" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("drivers")
        names = marker.args if marker else tuple(DRIVERS)
        metafunc.parametrize("driver", names, indirect=True)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "drivers(*names): run only on these drivers")


@pytest.fixture
def driver(request: Any) -> Iterator[Driver]:
    """A driver, closed after the test."""
    driver: Driver = DRIVERS[request.param]()
    yield driver
    driver.close()

"""Fixtures of the tests of telemetry; other parts are in `kit.py`."""

import pytest

from .kit import App, Heard


@pytest.fixture
def server():
    return App()


@pytest.fixture
def heard(server):
    heard = Heard()
    server.telemetry.add(heard)
    return heard

"""Fixtures of the tests of telemetry; the rest stands in `kit.py`."""

import importlib.util
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("telemetry_kit", Path(__file__).with_name("kit.py"))
kit = sys.modules["telemetry_kit"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kit)


@pytest.fixture
def server():
    return kit.App()


@pytest.fixture
def heard(server):
    heard = kit.Heard()
    server.telemetry.add(heard)
    return heard

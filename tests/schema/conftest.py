"""Fixtures for the tests of schemas."""

import sys

import pytest

from noizu_mcp.schema.engines import _compile


@pytest.fixture
def without_native(monkeypatch):
    """Hide the native engine as if it were not installed, and give the name of the other one."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    _compile.has_native.cache_clear()
    yield "python"
    _compile.has_native.cache_clear()

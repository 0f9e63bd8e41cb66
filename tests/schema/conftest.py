"""Fixtures for the tests of schemas."""

import sys
from importlib.abc import MetaPathFinder

import pytest

from noizu_mcp.schema.engines import _engine

NATIVE = "jsonschema_rs"


class Broken(MetaPathFinder):
    """Finds the native engine, but cannot load it."""

    def find_spec(self, name, path, target=None):
        if name == NATIVE:
            raise ImportError("libc.so.6: version `GLIBC_2.99' not found", name=NATIVE)


@pytest.fixture
def python_engine(monkeypatch):
    """Select the Python engine for the process."""
    monkeypatch.setenv("NOIZU_MCP_SCHEMA_ENGINE", "python")


@pytest.fixture(params=["missing", "broken"])
def without_native(request, monkeypatch):
    """Make it impossible to load the native engine; yields the reason."""
    monkeypatch.delenv("NOIZU_MCP_SCHEMA_ENGINE", raising=False)
    monkeypatch.delitem(sys.modules, "noizu_mcp.schema.engines._native", raising=False)
    monkeypatch.delattr("noizu_mcp.schema.engines._native", raising=False)
    if request.param == "missing":
        monkeypatch.setitem(sys.modules, NATIVE, None)
    else:
        monkeypatch.delitem(sys.modules, NATIVE, raising=False)
        monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    for cached in (_engine._load_native, _engine._note_fallback):
        cached.cache_clear()
    yield request.param
    for cached in (_engine._load_native, _engine._note_fallback):
        cached.cache_clear()

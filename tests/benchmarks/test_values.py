"""The values of the schema benchmark are valid and invalid as documented."""

import sys
from pathlib import Path

import pytest

from noizu_mcp.schema import read_shape

SERVERS = Path(__file__).resolve().parents[2] / "benchmarks" / "servers"


@pytest.fixture
def servers(monkeypatch):
    """Return the modules of the values and of the classes."""
    monkeypatch.syspath_prepend(str(SERVERS))
    import schema_noizu
    import schema_values

    yield schema_values, schema_noizu
    del sys.modules["schema_values"], sys.modules["schema_noizu"]


@pytest.mark.parametrize("name", ["small", "medium", "large", "union"])
def test_one_value_fits_and_the_other_has_one_fault(servers, name):
    """An invalid value has exactly one fault, however large it is."""
    values, classes = servers
    shape, _ = read_shape(classes.CLASSES[name])

    assert shape.compiled.violations(values.VALID[name]) == []
    assert isinstance(shape.build(values.VALID[name]), classes.CLASSES[name])
    assert len(shape.compiled.violations(values.faulty(name))) == 1

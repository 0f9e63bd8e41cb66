"""Modules from source text, so that errors have a file and a line."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from noizu_mcp import DefinitionError

PRELUDE = (
    "from noizu_mcp.components import Context, Tool, Toolkit, expand, mcp, tool\n"
    "from noizu_mcp.schema import Schema, field, fields as f\n"
    "\n"
)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Run source text as the module `case`, from `case.py` in the current directory."""
    monkeypatch.chdir(tmp_path)

    def run(source: str) -> ModuleType:
        path = tmp_path / "case.py"
        path.write_text(f"{PRELUDE}{source}\n", encoding="utf-8")
        spec = importlib.util.spec_from_file_location("case", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["case"] = module
        spec.loader.exec_module(module)
        return module

    yield run
    sys.modules.pop("case", None)


@pytest.fixture
def refusal(load: Callable[[str], ModuleType]) -> Callable[[str], str]:
    """Run source text that defines an invalid class, and return its DefinitionError."""

    def run(source: str) -> str:
        with pytest.raises(DefinitionError) as caught:
            load(source)
        return str(caught.value)

    return run

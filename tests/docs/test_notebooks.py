"""The notebook runs in a kernel, and so does its counterpart in FastMCP, with equal output."""

import ast
import importlib.util
from pathlib import Path

import pytest

from . import notebooks

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "docs" / "examples" / "notebook.ipynb"
THEIRS = ROOT / "benchmarks" / "comparison" / "notebook_fastmcp.ipynb"
pytestmark = pytest.mark.slow


def stored(notebook: Path) -> list[str]:
    """Return the output that is stored in a notebook, a text for each code cell."""
    cells = notebooks.code_cells(notebook)
    return ["\n".join(map(notebooks.shown, cell["outputs"])) for cell in cells]


def statements(notebook: Path) -> int:
    """Count the statements and heads of blocks of the code cells."""
    cells = ["".join(cell["source"]) for cell in notebooks.code_cells(notebook)]
    code = ast.parse(
        "async def main():\n" + "".join(f"  {line}" for line in "\n".join(cells).splitlines(True))
    )
    nodes = [node for node in ast.walk(code) if isinstance(node, ast.stmt)]
    return len(nodes) + sum(len(getattr(node, "decorator_list", ())) for node in nodes)


def test_the_stored_output_is_that_of_a_run(tmp_path: Path) -> None:
    """Every cell runs with the output that is stored in the file."""
    assert notebooks.outputs_of(OURS, tmp_path) == stored(OURS)


@pytest.mark.skipif(importlib.util.find_spec("fastmcp") is None, reason="fastmcp is not installed")
def test_outcomes_are_equal(tmp_path: Path) -> None:
    """The cells of both notebooks have the same output."""
    assert notebooks.outputs_of(THEIRS, tmp_path) == stored(OURS)


def test_code_is_not_longer() -> None:
    """The notebook has at most as many lines of code as its counterpart."""
    assert statements(OURS) <= statements(THEIRS)

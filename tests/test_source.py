"""Lines of source that errors point at."""

import linecache
import sys
import types
from pathlib import Path

import pytest

from noizu_mcp import DefinitionError
from noizu_mcp._source import locate

SOURCE = """\
class A:                       # 1
    x = 1                      # 2
    y: int = 2                 # 3
    input = {                  # 4
        "limit": {"deep": 1},  # 5
        "q": 2,                # 6
    }
    def method(self, *, a,     # 8
               b=1):           # 9
        class Local:           # 10
            z = 1              # 11
        return Local
    class B:                   # 13
        x = 3                  # 14
if A:
    try:
        class C:               # 17
            x = 1              # 18
    except ValueError:
        class C:               # 20
            x = 2              # 21
    match 1:
        case 1:
            def f(): pass      # 24
async def g():
    y, z = 1, 2
    class D: w = 1             # 27
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return the name of a module with SOURCE, in the working directory."""
    file = tmp_path / "example_source.py"
    file.write_text(SOURCE, encoding="utf-8")
    made = types.ModuleType("example_source")
    made.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "example_source", made)
    monkeypatch.chdir(tmp_path)
    return "example_source"


@pytest.mark.parametrize(
    ("qualname", "member", "near", "line"),
    [
        ("A", None, None, 1),
        ("A", "x", None, 2),
        ("A", "y", None, 3),
        ("A", "input", None, 4),
        ("A", "input.limit", None, 5),
        ("A", "input.limit.deep", None, 5),
        ("A", "input.q.nothing", None, 6),
        ("A", "input.nothing", None, 4),
        ("A", "x.nothing", None, 2),
        ("A", "method", None, 8),
        ("A", "nothing", None, 1),
        ("A.method", "b", None, 9),
        ("A.method", "nothing", None, 8),
        ("A.method.<locals>.Local", "z", None, 11),
        ("A.B", "x", None, 14),
        ("C", "x", None, 21),
        ("C", "x", 17, 18),
        ("f", None, None, 24),
        ("g.<locals>.D", "w", None, 27),
        ("Nothing", "x", None, None),
    ],
)
def test_lines(module, qualname, member, near, line):
    """Classes, functions, attributes, parameters and keys are found at any depth."""
    assert ("example_source.py", line) == locate(module, qualname, member, near)


def test_a_file_elsewhere_is_shown_in_full(module, monkeypatch):
    """Below the working directory the path is relative, elsewhere it is not."""
    file = sys.modules[module].__file__
    monkeypatch.chdir(Path(file).root)
    (Path(file).parent / "other").mkdir()
    monkeypatch.chdir(Path(file).parent / "other")

    assert (file, 1) == locate(module, "A")


def test_what_has_no_source(module):
    """Unknown modules, and files that are not Python, have no line."""
    Path(sys.modules[module].__file__).write_text("class (", encoding="utf-8")

    assert locate("no such module", "A") == (None, None)
    assert locate("sys", "A") == (None, None)
    assert locate(module, "A") == ("example_source.py", None)


def test_a_cell_of_a_notebook(monkeypatch):
    """A module without a file has its source in `linecache`."""
    cell = "/tmp/ipykernel_1/2.py"
    entry = (len(SOURCE), None, SOURCE.splitlines(keepends=True), cell)
    monkeypatch.setitem(linecache.cache, cell, entry)
    monkeypatch.setitem(sys.modules, "a_notebook", types.ModuleType("a_notebook"))
    assert locate("a_notebook", "A", "y", None, cell) == (cell, 3)
    assert locate("a_notebook", "A", "y") == (None, None)


def test_a_class_in_a_notebook(monkeypatch):
    """The problem of a field has the line of the field."""
    source = (
        "from noizu_mcp import Schema, Tool\n"
        "class Bad(Tool):\n"
        "    class Input(Schema):\n"
        "        a: int\n"
        "        b: int = 3.5\n"
        "    def call(self, args): ...\n"
    )
    cell = "/tmp/ipykernel_1/3.py"
    entry = (len(source), None, source.splitlines(keepends=True), cell)
    monkeypatch.setitem(linecache.cache, cell, entry)
    notebook = types.ModuleType("a_notebook")
    monkeypatch.setitem(sys.modules, "a_notebook", notebook)
    with pytest.raises(DefinitionError, match=rf"^{cell}:5: Bad.Input.b: "):
        exec(compile(source, cell, "exec"), vars(notebook))

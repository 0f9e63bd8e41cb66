"""Class statements of every kind, wrong ones and unusual ones, each with its result.

The rows are in two files beside this one. A row is `#--- ` and its name, the source, and lines with
`#=> `: for a wrong statement everything that its `DefinitionError` says, for an unusual one the
name and the definition of each component in it.
"""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from noizu_mcp import DefinitionError, Tool, TransportError, connect

PRELUDE = """import abc, attrs, contextlib, dataclasses, enum, functools, types, typing
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import *
from noizu_mcp import *; from noizu_mcp.policies import *
from noizu_mcp import fields as f
T = TypeVar("T"); P = ParamSpec("P"); N = TypeVar("N", bound=int)
"""


def rows_of(name):
    """Return the name, the source and the expected lines of each row of a file."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    for row in text.split("#--- ")[1:]:
        title, *lines = row.splitlines()
        expected = [line.removeprefix("#=> ") for line in lines if line.startswith("#=> ")]
        source = [line for line in lines if not line.startswith("#=> ")]
        yield pytest.param("\n".join(source), expected, id=title.replace(" ", "-"))


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Run source text as the module `case`, from `case.py` in the current directory."""
    monkeypatch.chdir(tmp_path)

    def run(source):
        path = tmp_path / "case.py"
        path.write_text(f"{PRELUDE}{source}\n", encoding="utf-8")
        spec = importlib.util.spec_from_file_location("case", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "case", module)
        spec.loader.exec_module(module)
        return module

    return run


@pytest.mark.parametrize(("source", "expected"), [*rows_of("wrong_statements.txt")])
def test_a_wrong_statement_is_refused(load, source, expected):
    """The error has a line for each problem: file, line, place, problem and correction."""
    with pytest.raises(DefinitionError) as caught:
        load(source)
    # Python words its own errors differently in other versions.
    said = [line.partition("Python cannot make the class")[0] for line in expected]
    lines = str(caught.value).splitlines()
    assert len(expected) == len(lines)
    assert said == [line.partition("Python cannot make the class")[0] for line in lines]


@pytest.mark.parametrize(("source", "expected"), [*rows_of("valid_statements.txt")])
def test_an_unusual_statement_is_read(load, source, expected):
    """A class statement that Python allows, with one meaning, has the schema that it states."""
    found = []
    for name, value in vars(load(source)).items():
        if isinstance(value, type) and value.__module__ == "case" and getattr(value, "__mcp__", ()):
            many = hasattr(value, "definitions")
            found.append((name, value.definitions() if many else value.definition()))
            assert type(vars(value)) is type(vars(int))
            assert type(vars(value).get("__annotations__", {})) is dict
    assert [tuple(line.split(" ", 1)) for line in expected] == [
        (name, json.dumps(definition, ensure_ascii=False)) for name, definition in found
    ]


#: A statement, the arguments of a call of its tool, and the result.
CALLS = {
    "generic": (
        (
            "class A(Tool, Generic[T]):\n"
            "    class Input(Schema):\n        item: T\n"
            "    def call(self, args: Input) -> list[T]: return [args.item]\n"
            "class B(A[int]): pass\n"
        ),
        {"item": 3},
        [3],
    ),
    "abstract methods": (
        (
            "class A(Tool, abc.ABC):\n"
            "    @abc.abstractmethod\n    def double(self, n: int) -> int: ...\n"
            "    def call(self, n: int) -> int: return self.double(n)\n"
            "class B(A):\n    def double(self, n): return 2 * n\n"
        ),
        {"n": 3},
        6,
    ),
    "protocol": (
        (
            "class P(Protocol):\n    def call(self, n: int) -> int: ...\n"
            "class B(Tool, P):\n    def call(self, n: int) -> int: return n + 1\n"
        ),
        {"n": 3},
        4,
    ),
    "bound method": (
        (
            "class Other:\n    def double(self, n: int) -> int: return 2 * n\n"
            "class B(Tool):\n    call = Other().double\n"
        ),
        {"n": 3},
        6,
    ),
    "rebound": (
        (
            "class B(Tool):\n    def call(self, n: int) -> int: return n\n"
            "    call = functools.wraps(call)(lambda *args, f=call, **named: -f(*args, **named))\n"
        ),
        {"n": 3},
        -3,
    ),
    "conditional": (
        (
            "class B(Tool):\n    def call(self, n: int) -> int: return 0\n"
            "    if True:\n        def call(self, n: int) -> int: return n\n"
        ),
        {"n": 3},
        3,
    ),
    "mangled": (
        "class B(Tool):\n    __one = 1\n    def call(self, n: int) -> int: return n + self.__one\n",
        {"n": 3},
        4,
    ),
    "made by a program": (
        (
            "def call(self, n: int) -> int: return n\n"
            "B = types.new_class('B', (Tool,), {'timeout': 3}, lambda new: new.update(call=call))\n"
        ),
        {"n": 3},
        3,
    ),
}


@pytest.mark.parametrize("name", CALLS)
async def test_an_unusual_tool_answers(load, name):
    """A call returns what the class defines."""
    source, arguments, expected = CALLS[name]
    module = load(f"{source}class S(Server, name='s', version='1'):\n    tools = [B]\n")
    assert module.B.__module__ == "case"
    async with connect(module.S, version="2025-11-25") as client:
        result = await client.call_tool("b", arguments)
    assert json.loads(result.text) == expected


def test_a_class_keeps_what_it_has_read(load):
    """Attributes that the statement does not read may change, and an equal value may be set."""
    module = load("class B(Tool, timeout=3):\n    title = 'x'\n    def call(self): ...\n")
    module.B.helper = 3
    module.B.title = module.B.title
    assert module.B.helper == 3
    with pytest.raises(DefinitionError, match=r"B\.timeout: is read when the class statement runs"):
        module.B.timeout = 4


def test_errors_of_the_author_stay_as_they_are(load):
    """Only Python's own errors about a class become a `DefinitionError`."""
    source = (
        "class Base:\n    def __init_subclass__(cls): raise ValueError('mine')\n"
        "class B(Base, Tool):\n    def call(self): ...\n"
    )
    with pytest.raises(ValueError, match="mine"):
        load(source)


def test_a_class_without_a_file_has_its_line():
    """Code that is run from a string has lines, too."""
    source = "class B(Tool):\n    def call(self): ...\n    def call(self): ...\n"
    with pytest.raises(DefinitionError, match=r"<string>:3: B\.call: replaces .* in line 2"):
        exec(source, {"Tool": Tool})


async def test_the_conflict_of_metaclasses_is_explained(tmp_path, monkeypatch):
    """Python refuses the bases before the class exists; the loader says what to write."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conflict.py").write_text(
        "import enum\nfrom noizu_mcp import Tool\nclass B(Tool, enum.Enum):\n    A = 1\n"
    )
    with pytest.raises(TransportError) as caught:
        async with connect("conflict.py"):
            pass
    assert str(caught.value) == (
        "cannot import conflict.py: a class cannot be a tool, or another component, and a pydantic"
        " model or an Enum in one; write a class for each, the model as class Input in the tool"
        " (conflict.py:3)"
    )

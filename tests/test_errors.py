"""The exceptions when they are copied or sent to another process."""

import copy
import importlib
import pickle
from pathlib import Path

import pytest

import noizu_mcp
from noizu_mcp import _errors
from noizu_mcp._errors import (
    DefinitionError,
    Denied,
    DeniedHidden,
    InsufficientScope,
    InvalidToken,
    McpError,
    McpException,
    Problem,
    RequestTimeout,
    ResourceNotFound,
    SchemaUnsupported,
    TargetError,
    TaskStarted,
    ToolError,
    TransportError,
    VerifierUnavailable,
)
from noizu_mcp.types import Content, Task

PACKAGE = Path(noizu_mcp.__file__).parent
MADE = [
    McpError(-32000, "no", {"a": [1]}),
    McpError(-32000, "no"),
    ToolError("text"),
    ToolError([Content.text("x"), "y"], meta={"k": 1}),
    ToolError(),
    Denied("no shell at night"),
    DeniedHidden("no shell at night", (-32602, "Unknown tool: shell", None)),
    DefinitionError([Problem("A.b", "is wrong", "app.py", 3), Problem("C", "too")]),
    SchemaUnsupported("cannot serve it", "unevaluatedItems"),
    RequestTimeout("late"),
    ResourceNotFound("db://users/9"),
    TaskStarted(Task("t", "working", created_at="then", last_updated_at="now", ttl_ms=5)),
    InvalidToken("expired"),
    InsufficientScope(["docs:read", "docs:write"]),
    VerifierUnavailable("no keys"),
    TransportError("no answer", status=502),
    TargetError("no such file: app.py", is_wrong=False),
]
WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {n}": lambda error, n=n: pickle.loads(pickle.dumps(error, n))
        for n in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", MADE, ids=repr)
def test_a_copy_is_the_same(error, way):
    """A copy has the same text, fields and notes."""
    error.add_note("a note")
    again = WAYS[way](error)
    assert type(again) is type(error)
    assert again is not error
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_a_subclass_with_a_constructor_of_its_own():
    """The constructor is not called again, since it may have any parameters."""
    again = copy.copy(Own(3))
    assert (again.code, again.number, str(again)) == (-32003, 3, "own (-32003)")


class Own(McpError):
    """An error of a program."""

    def __init__(self, number):
        self.number = number
        super().__init__(-32000 - number, "own")


def test_every_public_exception_is_tried():
    """An exception with its own constructor needs a line above."""
    public = [getattr(noizu_mcp, name) for name in noizu_mcp.__all__]
    found = {
        each
        for each in [*public, *vars(_errors).values()]
        if isinstance(each, type) and issubclass(each, BaseException) and "__init__" in vars(each)
    }
    assert found <= {type(error) for error in MADE}


FOLDERS = [
    ".".join(path.parent.relative_to(PACKAGE.parent).parts)
    for path in sorted(PACKAGE.rglob("__init__.py"))
]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_public_exception_has_one_base(folder):
    """Each public exception of the package is an `McpException`."""
    home = importlib.import_module(folder)
    public = [getattr(home, name) for name in getattr(home, "__all__", ())]
    errors = [each for each in public if isinstance(each, type) and issubclass(each, Exception)]

    assert [error for error in errors if not issubclass(error, McpException)] == []

"""Files and functions stay small enough to be read in one go."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "noizu_mcp"

FILE_LINES = 500
BODY_LINES = 60
POSITIONAL = 5

# Functions with more positional parameters, each with its reason.
MANY = {
    "schema/_declared_schema.py: _shape": "the last step of every form",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> dict[str, ast.Module]:
    """Parse every file of the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def functions() -> Iterator[tuple[str, Function]]:
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                yield f"{file}: {node.name}", node


def body_lines(function: Function) -> int:
    """Count the lines of a body without its docstring."""
    body = function.body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(body) > 1:
        first = body[1]
    return (body[-1].end_lineno or 0) - first.lineno + 1


def positional(function: Function) -> int:
    """Count the positional parameters, without `self` and `cls`."""
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"], ["mcs"]))


def test_files() -> None:
    """No file is longer than the budget."""
    sizes = {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8").count("\n")
        for path in PACKAGE.rglob("*.py")
    }

    assert {file: size for file, size in sizes.items() if size > FILE_LINES} == {}


def test_bodies() -> None:
    """No function is longer than the budget, and most are short."""
    sizes = {name: body_lines(function) for name, function in functions()}

    assert {name: size for name, size in sizes.items() if size > BODY_LINES} == {}
    assert sorted(sizes.values())[len(sizes) // 2] <= 10


def test_positional_parameters() -> None:
    """No function takes more by position than the budget, except the listed ones."""
    over = {name for name, function in functions() if positional(function) > POSITIONAL}

    assert over == MANY.keys()


def test_every_file_says_what_it_is() -> None:
    """The first line of a file is a docstring."""
    assert [file for file, tree in trees().items() if not ast.get_docstring(tree)] == []

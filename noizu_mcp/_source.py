"""Places of classes and their members in source files, for messages.

A source is read and parsed only when there is a mistake to report; correct programs read none.
"""

import ast
import linecache
import sys
from collections.abc import Iterator
from types import FrameType

from ._errors import Problem
from ._util import relative_path

_DefinitionNode = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def locate(
    module: str,
    qualname: str,
    member: str | None = None,
    near: int | None = None,
    cell: str | None = None,
) -> tuple[str | None, int | None]:
    """Find the line of a class, a function, or something inside it.

    Args:
        module: The `__module__` of the class or function.
        qualname: The `__qualname__` of the class or function.
        member: An attribute, method or parameter in it; with a dot, a key of the mapping that is
            assigned there: `input.limit`. If it is not there, the line of the class or function
            counts.
        near: The line to prefer, if the name is defined more than once; else the last one counts.
        cell: The source that is running, for a module without a file, such as a notebook.

    Returns:
        The file, relative to the working directory if it lies below, and the line counted from 1;
        each is None if it is unknown.
    """
    # A class made by a program, or in a console, has no file.
    file = getattr(sys.modules.get(module), "__file__", None) or cell
    if file is None:
        return None, None
    try:
        # `linecache` also knows the cells of notebooks; a file may have changed since it was
        # imported.
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return relative_path(file), None
    # A class inside a function: its name holds a step that no source has.
    steps = [step for step in qualname.split(".") if step != "<locals>"]
    lines: list[int] = []
    for home in _homes(tree, steps):
        # A member that a base class or a decorator makes has no line here: the class counts.
        inside = list(_member_lines(home, member)) if member else []
        lines += inside or [home.lineno]
    if not lines:
        return relative_path(file), None
    # Python keeps the last definition of a name.
    best = lines[-1] if near is None else min(lines, key=lambda line: abs(line - near))
    return relative_path(file), best


def calling_frame(depth: int = 1) -> FrameType:
    """Find the frame of a caller.

    Args:
        depth: 1 for the caller of the calling function, 2 for the caller of this caller.
    """
    # Not `inspect.stack`: it reads the source of every frame.
    return sys._getframe(depth + 1)


def problem_at(where: str, text: str, frame: FrameType) -> Problem:
    """Make the problem of a line that runs, where no class statement could report it.

    Args:
        where: The place, as source code has it: `tool(Echo).name`.
        text: The problem, and the correction.
        frame: The frame that runs the line.
    """
    return Problem(where, text, relative_path(frame.f_code.co_filename), frame.f_lineno)


def _homes(inside: ast.AST, steps: list[str]) -> Iterator[_DefinitionNode]:
    step, *rest = steps
    for found in _statements(inside):
        if isinstance(found, _DefinitionNode) and found.name == step:
            yield from _homes(found, rest) if rest else (found,)


def _statements(home: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a body, those under `if`, `try`, `with` and loops included."""
    for child in ast.iter_child_nodes(home):
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield child
            # Names in a nested body belong to that class or function.
            if not isinstance(child, _DefinitionNode):
                yield from _statements(child)


def _member_lines(home: _DefinitionNode, member: str) -> Iterator[int]:
    name, *keys = member.split(".")
    for statement in _statements(home):
        if isinstance(statement, _DefinitionNode) and statement.name == name:
            yield statement.lineno
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            # Only an assignment without an annotation can have several targets.
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(each, ast.Name) and each.id == name for each in targets):
                yield _key_line(statement.value, keys) or statement.lineno
    if isinstance(home, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for argument in ast.walk(home.args):
            if isinstance(argument, ast.arg) and argument.arg == name:
                yield argument.lineno


def _key_line(value: ast.expr | None, keys: list[str]) -> int | None:
    """Return the line of a key in a mapping that is written out, the deepest that is found."""
    if not keys or value is None:
        return None
    for node in ast.walk(value):
        if isinstance(node, ast.Dict):
            for key, inner in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == keys[0]:
                    return _key_line(inner, keys[1:]) or key.lineno
    return None

"""The marks that `@mcp` leaves on methods, until the class statement reads them."""

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Final

from ..._class_body import OVERLOAD, ClassBody
from ..._errors import DefinitionError
from ..._source import calling_frame, problem_at

# The options wait on the function, which stays as it is.
_MARKS: Final = "__mcp_marks__"


class Mark:
    """One `@mcp` line that waits for its method, or that stands above something else.

    Attributes:
        options: The options in the parentheses.
        misplaced: The object under the line, if it cannot be a tool.
        stray: Positional arguments, which `@mcp` does not take.
    """

    def __init__(self, options: Mapping[str, object], stray: tuple[object, ...] = ()) -> None:
        self.options = options
        self.misplaced: object = None
        self.stray = stray

    def __call__(self, method: object) -> object:
        return self.put(method, calling_frame())

    def put(self, method: object, frame: FrameType) -> object:
        """Mark a method.

        Args:
            method: The object under the line.
            frame: The frame that has the line.

        Returns:
            The method; for anything else the mark itself, which the class statement reports.

        Raises:
            DefinitionError: The object is a class that stands in no other class.
        """
        function = _function_of(method)
        # Only the body of a class has a local name `__qualname__`.
        if isinstance(method, type) and "__qualname__" not in frame.f_locals:
            text = "@mcp marks functions and methods, not classes; take it off"
            raise DefinitionError([problem_at(method.__name__, text, frame)])
        # A mark that stays in the class body is reported by the statement, with all its problems.
        if self.stray or isinstance(method, type) or not hasattr(function, "__code__"):
            self.misplaced = method
            return self
        if function is OVERLOAD:
            text = "@mcp stands above an overload; put it above the implementation only"
            raise DefinitionError([problem_at("@mcp", text, frame)])
        body = frame.f_locals
        if isinstance(body, ClassBody):
            body.marks.append((function, self.options))
        # A new tuple: a decorator in between may have copied the old one to another function.
        setattr(function, _MARKS, (*getattr(function, _MARKS, ()), self.options))
        return method

    def problem(self) -> str:
        """Explain why the line marks nothing."""
        if self.stray:
            return "@mcp takes keywords only; write @mcp(name=…)"
        if self.misplaced is None:
            return "@mcp(…) stands above nothing; put it on the line before a method"
        kind = "class" if isinstance(self.misplaced, type) else type(self.misplaced).__name__
        return f"@mcp marks methods and this is a {kind}; write def … under it"


def _function_of(value: object) -> object:
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value


def is_marked(value: object) -> bool:
    """Tell whether `@mcp` stands above a value of a class body, or hidden in it."""
    return isinstance(value, Mark) or marked_options(value) is not None or hides_mark(value)


def marked_options(value: object) -> dict[str, Any] | None:
    """Collect the options of a marked method.

    Args:
        value: A value of a class body.

    Returns:
        The options of all its `@mcp` lines, the lower line winning; None if there is no such line.
    """
    function = _function_of(value)
    marks = getattr(function, _MARKS, None) if hasattr(function, "__code__") else None
    if marks is None:
        return None
    # Decorators apply from the bottom up, so the lowest line comes first and must win.
    return {key: value for mark in reversed(marks) for key, value in mark.items()}


def lost_marks(body: Mapping[str, object]) -> Iterator[tuple[str, int]]:
    """Find the functions that `@mcp` marks in a class body, and that the class does not have.

    Args:
        body: The namespace of the class statement.

    Yields:
        The name of each function, and the line of its definition.
    """
    if not isinstance(body, ClassBody):
        return
    # `replacements` reports definitions that others replace.
    values = [*dict.values(body), *body.replaced()]
    found = (getattr(each, _MARKS, ()) for value in values for each in _inner_functions(value))
    kept = {id(mark) for marks in found for mark in marks}
    for function, options in body.marks:
        if id(options) not in kept:
            yield function.__name__, function.__code__.co_firstlineno


def _inner_functions(value: object) -> list[object]:
    """Give a value of a class body, and the functions that are directly in it."""
    # `property` keeps its function in `fget`; `cached_property`, `partial` and their kin in `func`.
    return [_function_of(value), *(getattr(value, name, None) for name in ("fget", "func"))]


def hides_mark(value: object) -> bool:
    """Tell a property, or another object around a method, under which `@mcp` stands."""
    _, *inner = _inner_functions(value)
    return not hasattr(value, "__code__") and any(
        marked_options(each) is not None for each in inner
    )

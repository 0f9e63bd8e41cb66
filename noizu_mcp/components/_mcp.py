"""`@mcp`: marks a method of a toolkit as a tool. Marking registers nothing.

The class statement reports what is wrong in a mark. Only where no class statement could, above a
class of a module and at `mcp.tool`, the line itself raises.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any, Final, Literal, NoReturn, TypeVar, Unpack, overload

from .._errors import DefinitionError
from .._foreign import METHODS
from .._source import calling_frame, problem_at
from ._overrides import ToolOverrides

_Method = TypeVar("_Method")

# Where the options wait for the class statement: on the function, which stays what it is.
_MARKS: Final = "__mcp_marks__"


class MethodOptions(ToolOverrides, total=False):
    """What `@mcp(…)` takes: what a registration may change, and what belongs to the method.

    The name is that of the method by default, the description the first paragraph of its docstring;
    `category=None` means none, whatever the kit says.

    Attributes:
        input: The arguments, in any of the four forms.
        output: The structured content, in any of the four forms.
        input_schema: The arguments as raw JSON Schema; wins over `input`.
        output_schema: The structured content as raw JSON Schema; wins over `output`.
        inline: Run a short sync method where it is called, not in a thread.
        strict: Refuse unknown arguments.
        task: Let calls go on as tasks: `required`, or `optional` where the client knows no tasks.
        starts_task: The method begins the task by itself, with `ctx.start_task()`.
    """

    input: Any
    output: Any
    input_schema: Mapping[str, Any] | str
    output_schema: Mapping[str, Any] | str
    inline: bool
    strict: bool
    task: Literal["optional", "required"] | None
    starts_task: bool


class Mark:
    """One `@mcp` line that waits for its method, or that has nothing it could be put on.

    Attributes:
        options: What stands in the parentheses.
        misplaced: What it was put on, if that cannot be a tool.
        stray: Positional arguments, which `@mcp` does not take.
    """

    def __init__(self, options: Mapping[str, Any], stray: tuple[Any, ...] = ()) -> None:
        self.options = options
        self.misplaced: Any = None
        self.stray = stray

    def __call__(self, method: Any) -> Any:
        return self.put(method, calling_frame())

    def put(self, method: Any, frame: FrameType) -> Any:
        """Mark a method.

        Args:
            method: What stands under the line.
            frame: The one that has the line.

        Returns:
            The method; the mark itself, which the class statement then reports, for anything else.

        Raises:
            DefinitionError: It is a class that stands in no other class.
        """
        function = method.__func__ if isinstance(method, staticmethod | classmethod) else method
        # Only the body of a class has a local name `__qualname__`.
        if isinstance(method, type) and "__qualname__" not in frame.f_locals:
            text = "@mcp marks methods of a Toolkit, not classes; take it off"
            raise DefinitionError([problem_at(method.__name__, text, frame)])
        if self.stray or isinstance(method, type) or not hasattr(function, "__code__"):
            self.misplaced = method
            return self
        # A new tuple: a decorator in between may have copied the old one to another function.
        setattr(function, _MARKS, (*getattr(function, _MARKS, ()), self.options))
        return method


@overload
def mcp(method: _Method, /) -> _Method: ...
@overload
def mcp(**options: Unpack[MethodOptions]) -> Callable[[_Method], _Method]: ...
def mcp(*args: Any, **options: Any) -> Any:
    """Mark a method of a `Toolkit` as a tool; the method stays as it is.

    `@mcp` alone takes the name from the method and the description from its docstring. Lines can
    be stacked: they make one set of options, and the line written lower wins.

    Args:
        *args: The method, when there are no parentheses.
        **options: See `MethodOptions`.

    Returns:
        The method, or what marks it. Whatever is wrong is reported by the class statement.
    """
    # Bare: above a method, or above what should be one, so that the class can say it is none.
    if len(args) == 1 and not options and (callable(args[0]) or hasattr(args[0], "__get__")):
        return Mark({}).put(args[0], calling_frame())
    return Mark(options, args)


def _no_server(method: str, *_: Any, **__: Any) -> NoReturn:
    """Stand for a method of a server; in other frameworks a server is often named `mcp`."""
    text = f"mcp is no server, it marks the methods of a Toolkit; {_INSTEAD[method]}"
    raise DefinitionError([problem_at(f"mcp.{method}", text, calling_frame())])


_RUN: Final = "write class …(Server, name='…', version='…'), and call run() of an instance"
_INSTEAD: Final = {**METHODS, "run": _RUN}
# On a function they are invisible to type checkers, which refuse `mcp.tool` on their own.
for _name in _INSTEAD:
    setattr(mcp, _name, partial(_no_server, _name))


def is_marked(value: Any) -> bool:
    """Tell whether `@mcp` stands above something in a class body, or hidden in it."""
    return isinstance(value, Mark) or marked_options(value) is not None or hides_mark(value)


def marked_options(value: Any) -> dict[str, Any] | None:
    """Collect the options of a marked method.

    Args:
        value: What stands in a class body.

    Returns:
        The options of all its `@mcp` lines, the lower line winning; None if there is no such line.
    """
    function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    marks = getattr(function, _MARKS, None) if hasattr(function, "__code__") else None
    if marks is None:
        return None
    # Decorators apply from the bottom up, so the lowest line comes first and must win.
    return {key: value for mark in reversed(marks) for key, value in mark.items()}


def hides_mark(value: Any) -> bool:
    """Tell a property, or another object around a method, under which `@mcp` stands.

    Args:
        value: What stands in a class body.
    """
    inner = (getattr(value, name, None) for name in ("fget", "func"))
    return not hasattr(value, "__code__") and any(
        marked_options(each) is not None for each in inner
    )


def mark_problem(mark: Mark) -> str:
    """Say what is wrong with a line that marks nothing."""
    if mark.stray:
        return "@mcp takes keywords only; write @mcp(name=…)"
    if mark.misplaced is None:
        return "@mcp(…) stands above nothing; put it on the line before a method"
    kind = "class" if isinstance(mark.misplaced, type) else type(mark.misplaced).__name__
    return f"@mcp marks methods and this is a {kind}; write def … under it"

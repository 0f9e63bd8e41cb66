"""`Toolkit`, a class with many tools, and `@mcp`, which marks its methods.

Marking registers nothing, and the class statement reports the problems of a mark. Only where no
class statement could, above a class of a module and at `mcp.tool`, the line itself raises.
"""

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Final, Literal, NoReturn, TypeVar, Unpack, overload

from .._errors import DefinitionError
from .._foreign import METHODS
from .._source import calling_frame, problem_at
from ..schema import docstring_parameters, docstring_summary
from ._tool import TOOL, ToolOverrides
from .declare._class_schemas import ClassSchemas, call_problems
from .declare._kind import Declared
from .declare._marks import Mark, hides_mark, marked_options
from .declare._options import DECLARED_NAME, Table, options_of, read_options
from .declare._statement import ComponentMeta, Declaration
from .handlers._signature import Row, read_handler

_Method = TypeVar("_Method")

_METHOD_OPTIONS: Final[Table] = options_of("mcp")
_ROW: Final = Row(("args", "ctx"))


class MethodOptions(ToolOverrides, total=False):
    """The options of `@mcp(…)`: those that a registration may change, and those of the method.

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
        The method, or a function that marks it. The class statement reports faults.
    """
    # Bare: above a method, or above something else, which the class then reports.
    if len(args) == 1 and not options and (callable(args[0]) or hasattr(args[0], "__get__")):
        return Mark({}).put(args[0], calling_frame())
    return Mark(options, args)


def _no_server(method: str, *_: Any, **__: Any) -> NoReturn:
    """Stand for a method of a server; in other frameworks a server is often named `mcp`."""
    text = f"mcp is not a server, it marks the methods of a Toolkit; {_INSTEAD[method]}"
    raise DefinitionError([problem_at(f"mcp.{method}", text, calling_frame())])


_RUN: Final = "write class …(Server, name='…', version='…'), and call run() of an instance"
_INSTEAD: Final = {**METHODS, "run": _RUN}
# On a function they are invisible to type checkers, which refuse `mcp.tool` on their own.
for _name in _INSTEAD:
    setattr(mcp, _name, partial(_no_server, _name))


class Toolkit(metaclass=ComponentMeta):
    """Many small tools in one class: subclass it and put `@mcp` above its methods.

    A method takes `()`, `(args)` or `(args, ctx)` after `self`, or `(*, a, b)` or `(ctx, *, a, b)`,
    where the keyword-only parameters are the input. `staticmethod` and `classmethod` work. Options
    of the class statement are defaults for all of its tools: `category`, `annotations`, `icons`,
    `meta`, `hidden`, `visible`, `timeout`, `max_concurrency`, `requires`, `inline`, `strict`,
    `task`, `starts_task`. With `abstract=True` it is a base that others take their tools from.

    Raises:
        DefinitionError: From the class statement; it lists all problems of the class.
    """

    __mcp_kind__: ClassVar = TOOL._replace(options=options_of("Toolkit"), members={}, methods={})
    __mcp__: ClassVar[tuple[Declared, ...]] = ()

    @classmethod
    def definitions(cls) -> list[dict[str, Any]]:
        """Describe the tools as `tools/list` of 2026-07-28 does, in the order of the methods.

        Returns:
            New JSON-ready dicts.
        """
        return copy.deepcopy([declared.definition() for declared in cls.__mcp__])

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        methods = _marked_methods(declaration)
        found = [_read_method(declaration, name, *marked) for name, marked in methods.items()]
        if not methods and not declaration.abstract and not declaration.problems:
            text = "a kit needs a method under @mcp; a base for kits needs abstract=True"
            declaration.problem("", text)
        cls.__mcp__ = tools = tuple(each for each in found if each is not None)
        names = Counter(each.options["name"] for each in tools)
        for each in tools:
            if (count := names[each.options["name"]]) > 1:
                text = f"one of {count} tools named {each.options['name']!r}; names differ in a kit"
                declaration.problem(each.handler.attribute, text)


def _marked_methods(declaration: Declaration) -> dict[str, tuple[type, Any, dict[str, Any]]]:
    """Find the marked methods, those of bases first; each with its class and its options.

    An override stays the tool that it overrides, with or without a line of its own; None in its
    place takes the tool away.
    """
    found: dict[str, tuple[type, Any, dict[str, Any]]] = {}
    for cls in reversed(declaration.cls.__mro__):
        for name, value in vars(cls).items():
            options = marked_options(value)
            if isinstance(value, Mark):
                declaration.problem(name, value.problem(), owner=cls)
            elif hides_mark(value):
                kind = type(value).__name__
                text = f"a {kind} stands above @mcp and hides it; write a method"
                declaration.problem(name, text, owner=cls)
            elif options is not None:
                found[name] = (cls, value, options)
            elif value is None:
                found.pop(name, None)
            elif name in found:
                found[name] = (cls, value, found[name][2])
    return found


def _read_method(
    declaration: Declaration, name: str, owner: type, value: Any, given: Mapping[str, Any]
) -> Declared | None:
    """Read one method of a kit; None after problems."""
    before = len(declaration.problems)
    report = declaration.reporter(name, owner)
    if name.startswith("_"):
        report("@mcp marks public methods; take the underscore off, or the @mcp")
    own, bad = read_options(_METHOD_OPTIONS, given)
    for option, text in bad:
        declaration.problem(f"{name}.{option}", text, name, owner)
    # A method with either of the two takes neither of them from the kit.
    left_out = {"hidden", "visible"} if {"hidden", "visible"} & own.keys() else set()
    defaults = {k: v for k, v in declaration.options.items() if k not in left_out}
    options = {**defaults, **own}
    if not DECLARED_NAME.fullmatch(options.get("name", name)):
        report("the method gives the tool an invalid name; write name=…")
    handler = read_handler(
        name,
        value,
        _ROW._replace(spreads=not {"input", "input_schema"} & own.keys()),
        declaration.scope,
        report,
        inline=options.get("inline", False),
    )
    if handler is not None:
        for option, text in call_problems(handler, options, own):
            report(f"{option} {text}" if option == "inline" else text)
    doc = handler.function.__doc__ if handler else None
    described = docstring_parameters(doc)
    schemas = ClassSchemas(declaration, name, handler, options, described, in_kit=True)
    if handler is None or len(declaration.problems) > before:
        return None
    summary = docstring_summary(doc)
    return Declared(
        kind=TOOL,
        options={"name": name, **({"description": summary} if summary else {}), **options},
        handler=handler,
        source=f"{owner.__module__}.{owner.__qualname__}.{name}",
        **schemas.parts(),
    )

"""`Toolkit`, a class with many tools, `@mcp`, which marks its methods, and `tool()`.

Marking registers nothing, and the class statement reports the problems of a mark. Only where no
class statement could, above a class of a module and at `mcp.tool`, the line itself raises.
"""

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Final, NoReturn, TypeAlias, TypeVar, Unpack, overload

from .._errors import DefinitionError
from .._foreign import METHODS
from .._source import calling_frame, problem_at
from .._value import JSONObject
from ..schema import docstring_parameters, docstring_summary
from ._tool import MethodOptions, Tool, ToolFunctionOptions, ToolOverrides
from .declare._class_schemas import ClassSchemas, call_problems
from .declare._component import Declared
from .declare._marks import Mark, hides_mark, lost_marks, marked_options
from .declare._options import DECLARED_NAME, Table, options_of, read_options
from .declare._statement import ComponentMeta, Declaration
from .declare._tool_kind import TOOL
from .handlers._handler import Home
from .handlers._signature import read_handler
from .registration._registration import Registration, refuses_decorating, register

_ToolMethod = TypeVar("_ToolMethod")

_METHOD_OPTIONS: Final[Table] = options_of("mcp")


@overload
def mcp(method: _ToolMethod, /) -> _ToolMethod: ...
@overload
def mcp(**options: Unpack[MethodOptions]) -> Callable[[_ToolMethod], _ToolMethod]: ...
def mcp(*args: object, **options: object) -> Any:
    """Mark a method of a `Toolkit`, or a function, as a tool; it stays as it is.

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


def _no_server(method: str, *_: object, **__: object) -> NoReturn:
    """Refuse a method of a server: in other frameworks a server is often named `mcp`."""
    text = f"mcp is not a server, it marks functions and methods; {_INSTEAD[method]}"
    raise DefinitionError([problem_at(f"mcp.{method}", text, calling_frame())])


_RUN: Final = "write class …(Server, name='…', version='…'), and call run() of an instance"
_INSTEAD: Final = {**METHODS, "run": _RUN}
# On a function they are invisible to type checkers, which refuse `mcp.tool` on their own.
for _name in _INSTEAD:
    setattr(mcp, _name, partial(_no_server, _name))


class Toolkit(metaclass=ComponentMeta):
    """Many small tools in one class: subclass it and put `@mcp` above its methods.

    The parameters of a method are the input, `add(self, a: int, b: int = 1)`; or `args` takes the
    whole input, and its annotation is the schema. An input in `@mcp(input=…)` goes to the first
    parameter. `ctx`, or a parameter annotated `Context`, takes the context. `staticmethod` and
    `classmethod` work. Options of the class statement are defaults for all of its tools:
    `category`, `annotations`, `icons`, `meta`, `hidden`, `visible`, `timeout`, `max_concurrency`,
    `max_queue`, `max_result_bytes`, `coerce`, `requires`, `available`, `loop`, `inline`, `strict`,
    `task`, `starts_task`, `restartable`. With `abstract=True` it is a base that others take
    their tools from.

    Raises:
        DefinitionError: From the class statement; it lists all problems of the class.
    """

    # A kit is registered among the tools; only its statement differs: a kit has no method `call`.
    __mcp_kind__: ClassVar = TOOL._replace(options=options_of("Toolkit"), members={}, methods={})
    __mcp__: ClassVar[tuple[Declared, ...]] = ()

    @classmethod
    def definitions(cls) -> list[JSONObject]:
        """Describe the tools as `tools/list` of 2026-07-28 does, in the order of the methods.

        Returns:
            New JSON-ready dicts.
        """
        return copy.deepcopy([declared.definition() for declared in cls.__mcp__])

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        for name, line in lost_marks(declaration.body):
            text = (
                "@mcp is lost: something above it, or a loop, put another object in the place of"
                " the function; write @mcp on top, or use functools.wraps in the decorator"
            )
            declaration.problem(name, text, line=line)
        methods = _marked_methods(declaration)
        # All methods are read, also after problems: one error lists them all.
        found = [_read_method(declaration, name, *marked) for name, marked in methods.items()]
        if not methods and not declaration.abstract and not declaration.problems:
            text = "a kit needs a method under @mcp; a base for kits needs abstract=True"
            declaration.problem("", text)
        cls.__mcp__ = tools = tuple(each for each in found if each is not None)
        # Methods differ in their names, but `name=` may give two of them one.
        names = Counter(each.options["name"] for each in tools)
        for each in tools:
            if (count := names[each.options["name"]]) > 1:
                text = f"one of {count} tools named {each.options['name']!r}; names differ in a kit"
                declaration.problem(each.handler.attribute, text)


def _marked_methods(declaration: Declaration) -> dict[str, tuple[type, object, dict[str, object]]]:
    """Find the marked methods, in bases first; each with its class and its options.

    An override stays a tool, with or without its own `@mcp`; None in its place removes the tool.
    """
    found: dict[str, tuple[type, object, dict[str, object]]] = {}
    # From the last base to the class itself: the nearest method counts, and a tool that is
    # overridden keeps its place in the list.
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
                before = found.get(name)
                # A base that knows nothing of the other one did not mean to override it.
                own = name in vars(declaration.cls)
                if before and not own and not issubclass(cls, before[0]):
                    text = f"{cls.__name__} and {before[0].__name__} both have it, and that of"
                    text += f" {before[0].__name__} would be lost; write it in the class, too"
                    declaration.problem(name, text)
                found[name] = (cls, value, options)
            elif value is None:
                found.pop(name, None)
            elif name in found:
                found[name] = (cls, value, found[name][2])
    return found


def _read_method(
    declaration: Declaration, name: str, owner: type, value: object, given: Mapping[str, object]
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
    # Python allows any letters in the name of a method, the specification only ASCII.
    if not DECLARED_NAME.fullmatch(options.get("name", name)):
        report("the method gives the tool an invalid name; write name=…")
    handler = read_handler(
        name,
        value,
        TOOL.methods["call"],
        declaration.scope,
        report,
        inline=options.get("inline", False),
        declared=not own.keys().isdisjoint(TOOL.inputs),
        home=Home(declaration.cls, declaration.types_of(owner)),
    )
    if handler is not None:
        for option, text in call_problems(handler, options, own):
            report(f"{option} {text}" if option == "inline" else text)
    # The schemas are read even if the method is wrong: their problems belong into the same error.
    doc = handler.function.__doc__ if handler else None
    described = docstring_parameters(doc)
    schemas = ClassSchemas(declaration, name, handler, options, described, on_function=True)
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


#: A class, an instance or a registration of a tool.
ToolTarget: TypeAlias = "type[Tool | Toolkit] | Tool | Toolkit | Registration"


@overload
def tool(target: ToolTarget, /, **overrides: Unpack[ToolOverrides]) -> Registration: ...
@overload
def tool(
    function: Callable[..., object], /, **options: Unpack[ToolFunctionOptions]
) -> Registration: ...
@refuses_decorating
def tool(target: object, /, **overrides: object) -> Registration:
    """Register a tool or a kit with some of its options changed, or a function as a tool.

    Args:
        target: A `Tool` or `Toolkit` class, a ready instance of one, another registration, or a
            function, whose parameters are the input.
        **overrides: The changes; see `ToolOverrides`. For a kit they hold for all of its tools. For
            a function all options of `@mcp(…)` are there, see `MethodOptions`: with `input_schema`
            the function takes the whole input in one parameter.

    Returns:
        An item for `tools = […]` of a server.

    Raises:
        DefinitionError: The target is not a tool, an option is unknown or wrong, or `name`, `title`
            or `description` is given for a kit of several tools.
    """
    return register(TOOL, target, overrides)

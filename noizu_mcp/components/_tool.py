"""`Tool`, a class that is one tool, and `tool()`, which registers tools."""

from collections.abc import Mapping
from inspect import isclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, Unpack

from ..types import Annotations
from .declare._class_schemas import ClassSchemas, call_problems, open_object
from .declare._kind import Component, Kind
from .declare._options import options_of
from .declare._reader import Reader
from .declare._statement import ComponentMeta, Declaration
from .handlers._bound import ToolSpec
from .handlers._signature import Handler, Row
from .registration._registration import Overrides, Registration, refuses_decorating, register

if TYPE_CHECKING:
    from ._toolkit import Toolkit

#: A class, an instance or a registration of a tool.
Target: TypeAlias = "type[Tool | Toolkit] | Tool | Toolkit | Registration"

TOOL: Final = Kind(
    feature="tools",
    noun="tool",
    options=options_of("Tool"),
    overrides=options_of("tool"),
    members={"Input": isclass, "Output": isclass},
    methods={"call": Row(("args", "ctx"), advice="declare a class Input, and ")},
    bound=ToolSpec,
)


class ToolOverrides(Overrides, total=False):
    """The options that the registration of a tool or of a kit may change.

    Attributes:
        category: Another category; None for none. It is merged into `meta`.
        annotations: Other hints.
        max_concurrency: Calls at one time, or None for no limit.
    """

    category: str | None
    annotations: Annotations | Mapping[str, Any] | None
    max_concurrency: int | None


class Tool(Component, metaclass=ComponentMeta):
    """One tool: subclass it, declare the input, write `call`.

    Options are keywords of the class statement, or attributes of the same names: `name`, `title`,
    `description`, `category`, `annotations`, `icons`, `meta`, `hidden`, `visible`, `timeout`,
    `max_concurrency`, `requires`, `inline`, `strict`, `task`, `starts_task`, `abstract`. The input
    is a nested class `Input`, or `input`, or `input_schema`; the output likewise, or the return
    annotation of `call`.

    `call` takes `()`, `(args)` or `(args, ctx)` after `self`, sync or async. A sync one runs in a
    worker thread, with `inline=True` on the loop. The name defaults to the name of the class in
    snake case, the description to the first paragraph of the docstring.

    Raises:
        DefinitionError: From the class statement; it lists all problems of the class.
    """

    __mcp_kind__: ClassVar = TOOL

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        cls.__mcp__ = _ToolReader(declaration).read()


class _ToolReader(Reader):
    unmarked = "a Tool has one method, call"

    def parts(self, handler: Handler | None) -> Mapping[str, Any]:
        """Read the schemas, and check the options that depend on `call`."""
        if handler is not None:
            for option, text in call_problems(handler, self.options, self.declaration.own):
                self.problem(option, text)
        described = self.descriptions(handler)
        schemas = ClassSchemas(self.declaration, "call", handler, self.options, described)
        if schemas.input is open_object():
            self.refuse_other_inputs("Input")
        return schemas.parts()


@refuses_decorating
def tool(target: Target, /, **overrides: Unpack[ToolOverrides]) -> Registration:
    """Register a tool or a kit with some of its options changed.

    Args:
        target: A `Tool` or `Toolkit` class, a ready instance of one, or another registration.
        **overrides: The changes; see `ToolOverrides`. For a kit they hold for all of its tools.

    Returns:
        An item for `tools = […]` of a server.

    Raises:
        DefinitionError: The target is not a tool, an option is unknown or wrong, or `name`, `title`
            or `description` is given for a kit of several tools.
    """
    return register(TOOL, target, overrides)

"""`Tool`: a class that is one tool."""

from typing import ClassVar

from ._declare import ComponentMeta, Declaration
from ._forms import Forms, forms_of, open_object
from ._handler import Handler, read_handler
from ._misses import is_class
from ._options import TOOL_OPTIONS
from ._plan import Described
from ._reader import Reader
from ._spec import ToolPlan
from ._task_options import task_problems


class Tool(Described, metaclass=ComponentMeta):
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
        DefinitionError: From the class statement; it lists all that is wrong in the class.
    """

    __mcp_kind__: ClassVar = "tools"
    __mcp_table__: ClassVar = TOOL_OPTIONS
    __mcp_members__: ClassVar = {"Input": is_class, "Output": is_class}
    __mcp__: ClassVar[tuple[ToolPlan, ...]] = ()

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        cls.__mcp__ = _ToolReader(declaration, "tool").plans()


class _ToolReader(Reader):
    """Reads the statement of one tool."""

    unmarked: ClassVar = "a Tool has one method, call"

    def plans(self) -> tuple[ToolPlan, ...]:
        if not self.needs_own("name"):
            self.derive_name()
        handler = self._handler()
        forms = Forms(
            self.declaration,
            "call",
            in_kit=False,
            strict=self.options.get("strict", False),
            descriptions=self.descriptions(handler),
        )
        if self.declaration.abstract:
            handler = None
        shape, output = forms.read(map(forms_of, self.cls.__mro__), handler)
        if handler is None:
            return ()
        if shape is open_object():
            self.unread_input("Input")
        plan = ToolPlan(
            options=self.options,
            input=shape,
            output=output,
            answer=handler,
            source=self.source,
        )
        return (plan,)

    def _handler(self) -> Handler | None:
        self.needs_method("call", ("args", "ctx"))
        declaration = self.declaration
        owner = declaration.owner_of("call")
        if owner is None:
            return None
        handler = read_handler(
            "call",
            vars(owner)["call"],
            declaration.scope,
            declaration.reporter("call", owner),
            inline=self.options.get("inline", False),
        )
        if handler is not None and handler.mode == "async" and "inline" in declaration.own:
            self.problem(
                "inline", "is for a sync call; an async one runs where it is called anyway"
            )
        for text in () if handler is None else task_problems(handler, self.options):
            self.problem("task", text)
        return handler

"""`Tool`: a class that is one tool."""

from typing import ClassVar

from .._util import snake_case
from ..schema import Shape, docstring_parameters, docstring_summary
from ._declare import ComponentMeta, Declaration, is_abstract
from ._forms import Forms, Side, forms_of, open_object
from ._handler import Handler, read_handler
from ._mcp import is_marked
from ._options import DECLARED_NAME, TOOL_OPTIONS
from ._plan import Described
from ._spec import ToolPlan


class Tool(Described, metaclass=ComponentMeta):
    """One tool: subclass it, declare the input, write `call`.

    Options are keywords of the class statement, or attributes of the same names: `name`, `title`,
    `description`, `category`, `annotations`, `icons`, `meta`, `hidden`, `visible`, `timeout`,
    `max_concurrency`, `inline`, `strict`, `abstract`. The input is a nested class `Input`, or
    `input`, or `input_schema`; the output likewise, or the return annotation of `call`.

    `call` takes `()`, `(args)` or `(args, ctx)` after `self`, sync or async. A sync one runs in a
    worker thread, with `inline=True` on the loop. The name defaults to the name of the class in
    snake case, the description to the first paragraph of the docstring.

    Raises:
        DefinitionError: From the class statement; it lists all that is wrong in the class.
    """

    __mcp_kind__: ClassVar = "tools"
    __mcp_table__: ClassVar = TOOL_OPTIONS
    __mcp__: ClassVar[tuple[ToolPlan, ...]] = ()

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        cls.__mcp__ = _Reader(cls, declaration).plans()


class _Reader:
    """Reads the statement of one tool."""

    def __init__(self, cls: type[Tool], declaration: Declaration) -> None:
        self.cls = cls
        self.declaration = declaration
        self.options = dict(declaration.options)

    def plans(self) -> tuple[ToolPlan, ...]:
        for name, value in vars(self.cls).items():
            if is_marked(value):
                text = "@mcp marks the tools of a Toolkit; a Tool has one method, call"
                self.declaration.problem(name, text, name)
        self._name()
        self._description()
        handler = self._handler()
        forms = Forms(
            self.declaration,
            "call",
            in_kit=False,
            strict=self.options.get("strict", False),
            descriptions=self._descriptions(handler),
        )
        has_input, shape = self._declared(forms, "input")
        has_output, output = self._declared(forms, "output")
        if handler is None or self.declaration.abstract:
            return ()
        shape = shape if has_input else forms.arguments(handler)
        output = output if has_output else forms.returned(handler)
        return (
            ToolPlan(
                options=self.options,
                input=shape or open_object(),
                output=output,
                answer=handler,
                source=f"{self.cls.__module__}.{self.cls.__qualname__}",
            ),
        )

    def _name(self) -> None:
        declaration = self.declaration
        if declaration.abstract:
            for option in ("name", "title"):
                if option in declaration.given:
                    text = "an abstract base is no tool; leave it to the subclasses"
                    declaration.problem(option, text, option)
            return
        if "name" in declaration.given:
            return
        for base in self.cls.__mro__[1:]:
            if isinstance(base, ComponentMeta) and not is_abstract(base):
                declaration.problem(
                    "",
                    f"a subclass of the tool {base.__name__} needs a name of its own; write"
                    f" name=…, or mark {base.__name__} with abstract=True",
                )
                return
        name = snake_case(self.cls.__name__)
        self.options["name"] = name
        if not DECLARED_NAME.fullmatch(name):
            declaration.problem(
                "", f"the class gives the tool no valid name: {name!r}; write name=…"
            )

    def _description(self) -> None:
        summary = docstring_summary(vars(self.cls).get("__doc__"))
        if summary is not None and "description" not in self.declaration.own:
            self.options["description"] = summary

    def _handler(self) -> Handler | None:
        owner = next((cls for cls in self.cls.__mro__ if "call" in vars(cls)), None)
        if owner is None:
            if not self.declaration.abstract:
                text = "a tool needs a method: async def call(self, args, ctx)"
                self.declaration.problem("", f"{text}; a base for tools needs abstract=True")
            return None

        def report(text: str) -> None:
            self.declaration.problem("call", text, "call", owner)

        found = vars(owner)["call"]
        inline = self.options.get("inline", False)
        handler = read_handler("call", found, self.declaration.scope, report, inline=inline)
        if handler is not None and handler.mode == "async" and "inline" in self.declaration.own:
            text = "is for a sync call; an async one runs where it is called anyway"
            self.declaration.problem("inline", text, "inline")
        return handler

    def _descriptions(self, handler: Handler | None) -> dict[str, str]:
        described = docstring_parameters(handler.function.__doc__) if handler else {}
        return described | docstring_parameters(vars(self.cls).get("__doc__"))

    def _declared(self, forms: Forms, side: Side) -> tuple[bool, Shape | None]:
        for cls in self.cls.__mro__:
            declared, shape = forms.declared(side, forms_of(cls))
            if declared:
                return True, shape
        return False, None

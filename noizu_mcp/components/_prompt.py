"""`Prompt`: a class that is one prompt."""

import inspect
from typing import ClassVar

from ._declare import ComponentMeta, Declaration
from ._forms import is_one_value
from ._method import Method, read_method
from ._misses import is_class, takes
from ._plan import Described
from ._prompt_spec import PromptPlan
from ._reader import Reader
from ._resource_options import PROMPT_OPTIONS
from ._texts import Texts, impossible


class Prompt(Described, metaclass=ComponentMeta):
    """One prompt: subclass it, declare the arguments, write `get`.

    Options are keywords of the class statement, or attributes of the same names: `name`, `title`,
    `description`, `icons`, `meta`, `hidden`, `visible`, `timeout`, `requires`, `abstract`. The name
    defaults to the name of the class in snake case, the description to the first paragraph of the
    docstring.

    The arguments are the fields of a nested class `Arguments`, each an `argument(…)`, or fields as
    data, `arguments = {"code": f.string(required=True)}`. They are texts on the wire: a field of
    another type is read from its text. Without either, `get` takes a dict of what was sent.

    `get` takes `()`, `(args)` or `(args, ctx)` after `self`, sync or async; a sync one runs in a
    worker thread. It returns a text, which the user says, a `PromptMessage`, a list of these, or a
    `PromptResult`. `complete(argument, prefix, ctx)` completes arguments and goes before their own
    `complete=`.

    Raises:
        DefinitionError: From the class statement; it lists all that is wrong in the class.
    """

    __mcp_kind__: ClassVar = "prompts"
    __mcp_table__: ClassVar = PROMPT_OPTIONS
    __mcp_members__: ClassVar = {"Arguments": is_class, "complete": takes(3, 4)}
    __mcp__: ClassVar[tuple[PromptPlan, ...]] = ()

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        cls.__mcp__ = _PromptReader(declaration, "prompt").plans()


class _PromptReader(Reader):
    """Reads the statement of one prompt."""

    def plans(self) -> tuple[PromptPlan, ...]:
        if not self.needs_own("name"):
            self.derive_name()
        get = self.required_method("get", ("args", "ctx"))
        offers = ("argument", "prefix", "ctx")
        complete = read_method(self.declaration, "complete", offers, least=2)
        arguments = self.arguments(get)
        text = "an argument is a text; declare it as str, int, float, bool, an Enum or a Literal"
        self.argument_faults(arguments, [(name, text) for name in impossible(arguments.fields)])
        if self.declaration.abstract or get is None:
            return ()
        if not arguments.declared:
            self.unread_input("Arguments")
            self._check_whole(get)
        plan = PromptPlan(
            options=self.options,
            texts=None if arguments.shape is None else Texts(arguments.shape),
            sources=arguments.sources,
            answer=get,
            complete=complete,
            source=self.source,
        )
        return (plan,)

    def _check_whole(self, get: Method) -> None:
        """Refuse a parameter that is meant to be one argument, and would be passed all of them."""
        parameters = list(inspect.signature(get.function).parameters.values())
        is_static = isinstance(inspect.getattr_static(self.cls, "get"), staticmethod)
        for p in parameters[not is_static :][: min(get.takes, 1)]:
            if is_one_value(p.name, p.annotation):
                text = (
                    f"{p.name!r} would be passed all arguments in one mapping; declare {p.name} in"
                    " a class Arguments, and write def get(self, args)"
                )
                self.problem("get", text)

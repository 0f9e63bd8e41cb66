"""`Prompt`: a class that is one prompt."""

from typing import ClassVar

from ..schema import Fault
from ._declare import ComponentMeta, Declaration
from ._method import read_method
from ._plan import Described
from ._prompt_spec import PromptPlan
from ._reader import Reader
from ._resource_options import PROMPT_OPTIONS
from ._texts import Texts


class Prompt(Described, metaclass=ComponentMeta):
    """One prompt: subclass it, declare the arguments, write `get`.

    Options are keywords of the class statement, or attributes of the same names: `name`, `title`,
    `description`, `icons`, `meta`, `hidden`, `visible`, `timeout`, `requires`, `abstract`. The name
    defaults to the name of the class in snake case, the description to the first paragraph of the
    docstring.

    The arguments are the fields of a nested class `Arguments`, each an `argument(…)`. They are
    texts on the wire: a field of another type is read from its text. Without the class, `get` takes
    a dict of what was sent.

    `get` takes `()`, `(args)` or `(args, ctx)` after `self`, sync or async; a sync one runs in a
    worker thread. It returns a text, which the user says, a `PromptMessage`, a list of these, or a
    `PromptResult`. `complete(argument, prefix, ctx)` completes arguments and goes before their own
    `complete=`.

    Raises:
        DefinitionError: From the class statement; it lists all that is wrong in the class.
    """

    __mcp_kind__: ClassVar = "prompts"
    __mcp_table__: ClassVar = PROMPT_OPTIONS
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
        form, shape = self.arguments(get)
        sources = self.sources(form, shape)
        texts = None if shape is None else Texts(shape)
        if texts is not None:
            text = (
                "an argument is a text; declare it as str, int, float, bool, an Enum or a Literal"
            )
            self.argument_faults([Fault((name,), text, form) for name in texts.impossible()])
        if self.declaration.abstract or get is None:
            return ()
        plan = PromptPlan(
            options=self.options,
            texts=texts,
            sources=sources,
            answer=get,
            complete=complete,
            source=self.source,
        )
        return (plan,)

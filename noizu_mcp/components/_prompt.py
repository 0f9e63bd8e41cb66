"""`Prompt`, a class that is one prompt, and `prompt()`, which registers prompts."""

from collections.abc import Mapping
from inspect import isclass
from typing import Any, ClassVar, Final, TypeAlias, Unpack

from .declare._arguments import ArgumentReader
from .declare._kind import Component, Kind
from .declare._options import options_of
from .declare._reader import is_one_value
from .declare._statement import ComponentMeta, Declaration
from .declare._typos import takes
from .handlers._bound import PromptSpec
from .handlers._completion import completer
from .handlers._signature import Handler, Row
from .handlers._text_values import TextValues, impossible
from .registration._registration import Overrides, Registration, refuses_decorating, register

#: A class, an instance or a registration of a prompt.
Target: TypeAlias = "type[Prompt] | Prompt | Registration"

PROMPT: Final = Kind(
    feature="prompts",
    noun="prompt",
    options=options_of("Prompt"),
    overrides=options_of("prompt"),
    members={"Arguments": isclass, "complete": takes(3, 4)},
    methods={"get": Row(("args", "ctx")), "complete": Row(("argument", "prefix", "ctx"), least=2)},
    bound=PromptSpec,
)


class Prompt(Component, metaclass=ComponentMeta):
    """One prompt: subclass it, declare the arguments, write `get`.

    Options are keywords of the class statement, or attributes of the same names: `name`, `title`,
    `description`, `icons`, `meta`, `hidden`, `visible`, `timeout`, `requires`, `abstract`. The name
    defaults to the name of the class in snake case, the description to the first paragraph of the
    docstring.

    The arguments are the fields of a nested class `Arguments`, each an `argument(…)`, or fields as
    data, `arguments = {"code": f.string(required=True)}`. They are texts on the wire: a field of
    another type is read from its text. Without either, `get` takes a dict of all arguments.

    `get` takes `()`, `(args)` or `(args, ctx)` after `self`, sync or async; a sync one runs in a
    worker thread. It returns a text, which the user says, a `PromptMessage`, a list of these, or a
    `PromptResult`. `complete(argument, prefix, ctx)` completes arguments and goes before their own
    `complete=`.

    Raises:
        DefinitionError: From the class statement; it lists all problems of the class.
    """

    __mcp_kind__: ClassVar = PROMPT

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        cls.__mcp__ = _PromptReader(declaration).read()


class _PromptReader(ArgumentReader):
    def parts(self, handler: Handler | None) -> Mapping[str, Any]:
        """Read the arguments."""
        arguments = self.arguments(handler)
        text = "an argument is a text; declare it as str, int, float, bool, an Enum or a Literal"
        self.argument_faults(arguments, [(name, text) for name in impossible(arguments.fields)])
        if handler is not None and not arguments.declared:
            self.refuse_other_inputs("Arguments")
            for p in handler.positional[:1]:
                if is_one_value(p):
                    text = (
                        f"{p.name!r} would be passed all arguments in one mapping; declare {p.name}"
                        " in a class Arguments, and write def get(self, args)"
                    )
                    self.problem("get", text)
        shape, complete = arguments.shape, self.handlers["complete"]
        texts = None if shape is None else TextValues(shape)
        required = () if texts is None else texts.required
        entries = [
            {
                "name": name,
                "title": shape.titles[name][0] if shape and name in shape.titles else None,
                "description": schema.get("description"),
                "required": name in required or None,
            }
            for name, schema in arguments.fields.items()
        ]
        wire = [{k: v for k, v in each.items() if v is not None} for each in entries]
        return {
            "wire": {"arguments": wire or None},
            "fields": lambda instance: {
                "texts": texts,
                "arguments": tuple(arguments.fields),
                "required": required,
                "complete": completer(complete, instance, arguments.sources),
            },
        }


@refuses_decorating
def prompt(target: Target, /, **overrides: Unpack[Overrides]) -> Registration:
    """Register a prompt with some of its options changed.

    Args:
        target: A `Prompt` class, a ready instance of one, or another registration.
        **overrides: The changes; see `Overrides`.

    Returns:
        An item for `prompts = […]` of a server.

    Raises:
        DefinitionError: The target is not a prompt, or an option is unknown or wrong.
    """
    return register(PROMPT, target, overrides)

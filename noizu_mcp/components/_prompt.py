"""`Prompt`, a class that is one prompt, and `prompt()`, which registers prompts."""

from collections.abc import Callable
from typing import ClassVar, TypeAlias, Unpack, overload

from .declare._component import Component
from .declare._prompt_kind import PROMPT
from .declare._statement import ComponentMeta
from .registration._registration import Overrides, Registration, refuses_decorating, register

#: A class, an instance or a registration of a prompt.
PromptTarget: TypeAlias = "type[Prompt] | Prompt | Registration"


class Prompt(Component, metaclass=ComponentMeta):
    """One prompt: subclass it, declare the arguments, write `get`.

    Options are keywords of the class statement, or attributes of the same names: `name`, `title`,
    `description`, `icons`, `meta`, `hidden`, `visible`, `timeout`, `requires`, `available`, `loop`,
    `abstract`. The name defaults to the name of the class in snake case, the description to the
    first paragraph of the docstring.

    The arguments are the fields of a nested class `Arguments`, each an `argument(…)`, or fields as
    data, `arguments = {"code": f.string(required=True)}`. They are texts on the wire: a field of
    another type is read from its text. They go to the first parameter of `get`. Without either, the
    parameters of `get` are the arguments, or `args` takes all of them. `ctx` takes the context.

    `get` is sync or async; a sync one runs in a worker thread. It returns a text, which the user
    says, a `PromptMessage`, a list of these, or a `PromptResult`. `complete(argument, prefix, ctx)`
    completes arguments and goes before their own `complete=`.

    Raises:
        DefinitionError: From the class statement; it lists all problems of the class.
    """

    __mcp_kind__: ClassVar = PROMPT


class PromptOptions(Overrides, total=False):
    """The options of a function that is a prompt: the options of a registration, and more.

    Attributes:
        arguments: The arguments as fields, if the function takes them in one object.
    """

    arguments: object


@overload
def prompt(target: PromptTarget, /, **overrides: Unpack[Overrides]) -> Registration: ...
@overload
def prompt(
    function: Callable[..., object], /, **options: Unpack[PromptOptions]
) -> Registration: ...
@refuses_decorating
def prompt(target: object, /, **overrides: object) -> Registration:
    """Register a prompt with some of its options changed, or a function as a prompt.

    Args:
        target: A `Prompt` class, a ready instance of one, another registration, or a function,
            whose parameters are the arguments.
        **overrides: The changes; see `Overrides`; for a function `PromptOptions`.

    Returns:
        An item for `prompts = […]` of a server.

    Raises:
        DefinitionError: The target is not a prompt, or an option is unknown or wrong.
    """
    return register(PROMPT, target, overrides)

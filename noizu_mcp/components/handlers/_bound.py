"""Bound components: all that a server needs to list and serve them, with nothing left to look up.

The fields that a class or a registration may leave out have their defaults here, under the names of
the options: an option that is given becomes the field.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self

from ..._errors import DefinitionError, McpError, Problem
from ..._nearest import nearest
from ..._schema_engine import EngineName
from ..._util import UNSET, Unset, final
from ..._value import Frozen, JSONObject
from ...schema import Shape, describe, to_problems
from ...types import META_VIOLATIONS, Annotations, Icon
from ._handler import Mode

if TYPE_CHECKING:
    from ...types import RequireScopes
    from ...uri import UriTemplate
    from ._completion import Source
    from ._text_values import TextValues

# JSON-RPC 2.0: invalid params; server/prompts, Error Handling.
_INVALID_PARAMS: Final = -32602
#: Characters of a name of the client's in an error.
_SHOWN: Final = 80


class MountGuard(Protocol):
    """Policies that stand between a server and a component of another server that it mounts."""

    @property
    def chains(self) -> Mapping[str, object]:
        """Empty if there are no policies now."""

    async def admit(
        self, kind: object, name: str, arguments: Mapping[str, object], ctx: object
    ) -> None:
        """Ask them about a call; see `admit` of the server."""


class Bound(Frozen):
    """A component that is registered, bound to the instance that answers.

    Attributes:
        key: The member of the definition that identifies it: `name`, `uri` or `uriTemplate`.
        name: The name for programs; for a resource without a name its URI.
        title: The name for people.
        description: The purpose, for a model to read.
        icons: Pictures of it.
        hidden: Left out of the lists, still served.
        timeout: Seconds that an answer may take; None for no limit, UNSET for the server's limit.
        requires: Scopes that a caller must hold; None for none.
        available: Tells from the context whether the caller may list and use it; None: everybody.
        guard: The policies of the mounted server that it comes from; None for no such server.
        loop: The loop of its coroutine functions, `trio` or `asyncio`; None: as the server.
        mode: `async`, `thread` (sync, may block) or `inline` (sync and short; tools only).
        takes_context: True if the handler takes the context.
        invoke: Calls the handler with the values of its row: `(args, ctx)` for tools and prompts,
            `(uri, ctx)` for resources, `(uri, args, ctx)` for templates.
        definition: The entry of the list of 2026-07-28. It must not be changed.
        source: Where the class or the method stands, for logs: `app.Utilities.read_file`.
    """

    key: ClassVar = "name"

    name: str
    title: str | None = None
    description: str | None = None
    icons: tuple[Icon, ...] = ()
    hidden: bool = False
    timeout: float | Unset | None = UNSET
    requires: "RequireScopes | None" = None
    available: Callable[[object], object] | None = None
    guard: MountGuard | None = None
    loop: str | None = None
    mode: Mode
    takes_context: bool
    invoke: Callable[..., object]
    definition: JSONObject
    source: str

    def on_engine(self, engine: EngineName) -> Self:
        """Return the component with its values judged by an engine.

        Args:
            engine: The engine.

        Raises:
            DefinitionError: The engine does not serve one of the schemas.
        """
        fields, problems = dict(vars(self)), list[Problem]()
        for name in ("input", "output", "texts"):
            # A component of a definition hands on what it gets.
            if hasattr(fields.get(name), "on_engine"):
                fields[name], faults = fields[name].on_engine(engine)
                problems += to_problems(faults, f"{self.source}.{name}")
        if problems:
            raise DefinitionError(problems)
        return type(self)(**fields)

    # The definition names it as clients do; all fields would fill a screen.
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.definition[self.key]!r}, {self.source})"


@final
class ToolSpec(Bound):
    """A registered tool.

    Like every component it has `name`, `title`, `description`, `icons`, `hidden`, `timeout`,
    `requires`, `available`, `loop`, and `definition`, the entry of the list of 2026-07-28.

    Attributes:
        category: The category, also in `meta`.
        annotations: Hints for the client.
        meta: `_meta` of the definition, with the category in it.
        input: The declared arguments; `{"type": "object"}` if none are declared.
        output: The declared structured content, or None.
        coerce: Read text that stands for other types; None for the rule of the server.
        max_concurrency: Calls at one time; None for no limit.
        max_queue: Calls that may wait for that; None for the limit of the server.
        max_result_bytes: Bytes of a result as JSON; None for the limit of the server.
        task: `optional` or `required` if calls may go on as tasks; None if not.
        starts_task: True if the handler begins the task by itself.
        restartable: True if its task runs again after its node is gone.
        mirrored: The path of each property that an HTTP header mirrors, by the header.
        handles: The class of each parameter that takes a handle.
        sources: The names of the tools that return a handle of each of these classes.
    """

    category: str | None = None
    annotations: Annotations | None = None
    meta: JSONObject | None = None
    input: Shape
    output: Shape | None
    coerce: bool | None = None
    max_concurrency: int | None = None
    max_queue: int | None = None
    max_result_bytes: int | None = None
    task: str | None = None
    starts_task: bool = False
    restartable: bool = False
    mirrored: Mapping[str, tuple[str, ...]]
    handles: Mapping[str, type] = MappingProxyType({})
    sources: Mapping[type, tuple[str, ...]] = MappingProxyType({})

    @property
    def is_read_only(self) -> bool:
        """True if the tool has the hint that it changes nothing."""
        return self.annotations is not None and self.annotations.read_only_hint is True


class Readable(Bound):
    """A registered resource or resource template.

    Attributes:
        mime_type: The media type of the contents, if declared.
        subscribable: True if clients may subscribe to changes.
    """

    mime_type: str | None = None
    subscribable: bool = False


@final
class ResourceSpec(Readable):
    """A registered resource.

    Attributes:
        uri: Its URI.
    """

    key = "uri"

    uri: str


@final
class TemplateSpec(Readable):
    """A registered resource template.

    Attributes:
        uri_template: The template of the URIs.
        texts: The declared variables.
        variables: The names of the variables.
        complete: Gives the source of completions of a variable, or None.
        list: Gives the instances for `resources/list`, as `to_listed` takes them, from the
            context. None if they are not listed.
        list_mode: The mode of `list`: `async` or `thread`.
    """

    key = "uriTemplate"

    uri_template: "UriTemplate"
    texts: "TextValues"
    variables: tuple[str, ...]
    complete: Callable[[str], "Source | None"]
    list: Callable[[object], object] | None
    list_mode: Mode

    def match(self, uri: str) -> object:
        """Read the variables of a URI.

        Returns:
            The arguments for `invoke`; None if the template does not match, or a value does not
            fit.
        """
        # With a value that does not fit, the resource does not exist here: another template may
        # match the same URI.
        values = self.uri_template.match(uri)
        return None if values is None else self.texts.read(values)[0]


@final
class PromptSpec(Bound):
    """A registered prompt.

    Attributes:
        texts: The declared arguments; None if the prompt takes a dict of all arguments.
        arguments: The names of its arguments, in order.
        required: The arguments that must be given.
        complete: Gives the source of completions of an argument, or None.
    """

    texts: "TextValues | None"
    arguments: tuple[str, ...]
    required: tuple[str, ...]
    complete: Callable[[str], "Source | None"]

    def prepare(self, given: object) -> object:
        """Check the arguments of `prompts/get`, and turn them into the value that `get` takes.

        Args:
            given: The arguments as sent; `{}` when they were absent.

        Raises:
            McpError: They do not fit (-32602).
        """
        if not isinstance(given, Mapping):
            text = f"The arguments of prompt {self.name} must be an object"
            raise McpError(_INVALID_PARAMS, text)
        # A copy, since the handler may change it.
        if self.texts is None:
            return dict(given)
        missing = [argument for argument in self.required if argument not in given]
        if missing:
            raise McpError(_INVALID_PARAMS, self._missing(missing, given))
        args, violations = self.texts.read(given)
        if violations:
            raise McpError(
                _INVALID_PARAMS,
                f"Invalid arguments for prompt {self.name}:\n" + "\n".join(describe(violations)),
                {META_VIOLATIONS: [violation.to_wire() for violation in violations]},
            )
        return args

    def _missing(self, missing: Sequence[str], given: Mapping[object, object]) -> str:
        """Name the missing arguments, and the names that they were probably sent under."""
        strangers = [str(name) for name in given if name not in self.arguments]
        meant = {name: nearest(name, strangers) for name in missing}
        hints = [f"; was {name} sent as {word[:_SHOWN]!r}?" for name, word in meant.items() if word]
        return f"Missing required arguments: {', '.join(missing)}{''.join(hints)}"

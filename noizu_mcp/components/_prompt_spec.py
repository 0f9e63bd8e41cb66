"""A prompt, ready to be listed and got: everything settled, nothing left to look up.

A class statement leaves a `PromptPlan`; a registration binds it to an instance: a `PromptSpec`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from .._errors import McpError
from .._util import Unset, final
from ..schema import describe
from ..types import META_VIOLATIONS, RequireScopes
from ._completion import Source, completer
from ._frozen import Frozen
from ._method import Method
from ._plan import Plan
from ._signature import Mode
from ._texts import Texts

# JSON-RPC 2.0: invalid params; server/prompts, Error Handling.
_INVALID_PARAMS: Final = -32602


@final
class PromptSpec(Frozen):
    """A registered prompt.

    Attributes:
        name: What `prompts/get` calls it.
        description: What it is good for; also of what it gives, unless that says otherwise.
        hidden: Left out of `prompts/list`, still served.
        arguments: The names of its arguments, in order.
        required: Those that must be given.
        timeout: Seconds that getting it may take; None for no limit, UNSET for the server's.
        requires: Scopes that a caller must hold; None for none.
        mode: `async` or `thread` (sync, may block).
        takes_context: Whether `get` wants the context.
        prepare: Turns the arguments that a client sent, `{}` when they were absent, into what
            `get` takes. Raises McpError -32602 when they do not fit.
        invoke: Calls `get` with what it takes of `(args, ctx)`.
        complete: Says what an argument is completed from; None if nothing completes it.
        definition: The prompt as `prompts/list` of 2026-07-28 describes it. Not to be changed.
        source: Where the class stands, for logs: `app.CodeReview`.
    """

    name: str
    description: str | None
    hidden: bool
    arguments: tuple[str, ...]
    required: tuple[str, ...]
    timeout: float | Unset | None
    requires: RequireScopes | None
    mode: Mode
    takes_context: bool
    prepare: Callable[[Any], Any]
    invoke: Callable[[Any, Any], Any]
    complete: Callable[[str], Source | None]
    definition: dict[str, Any]
    source: str

    def __repr__(self) -> str:
        return f"PromptSpec({self.name!r}, {self.source})"


class PromptPlan(Plan):
    """What a class statement settles about a prompt.

    Attributes:
        texts: The form of its arguments; None if it declares none, and takes them as they come.
        sources: What they are completed from, if declared.
        complete: The method that completes arguments, if there is one.
    """

    texts: Texts | None
    sources: Mapping[str, Source]
    complete: Method | None

    def own(self) -> dict[str, Any]:
        """Give the arguments."""
        return {"arguments": self._arguments() or None}

    def _arguments(self) -> list[dict[str, Any]]:
        if self.texts is None:
            return []
        titles = self.texts.shape.titles
        arguments = [
            {
                "name": name,
                "title": titles[name][0] if name in titles else None,
                "description": schema.get("description"),
                "required": name in self.required or None,
            }
            for name, schema in self.texts.fields.items()
        ]
        return [{k: v for k, v in each.items() if v is not None} for each in arguments]

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments that must be given."""
        return () if self.texts is None else self.texts.required

    def bind(self, instance: object, overrides: Mapping[str, Any]) -> PromptSpec:
        """Make the spec that a server serves.

        Args:
            instance: The prompt.
            overrides: Options of the registration; they replace the plan's own.
        """
        options = {**self.options, **overrides}
        texts, name = self.texts, options["name"]
        return PromptSpec(
            name=name,
            description=options.get("description"),
            arguments=() if texts is None else texts.names,
            required=self.required,
            prepare=lambda given: _prepare(name, texts, given),
            complete=completer(self.complete, instance, self.sources),
            **self.shared(instance, overrides),
        )


def _prepare(name: str, texts: Texts | None, given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise McpError(_INVALID_PARAMS, f"The arguments of prompt {name} must be an object")
    if texts is None:
        return dict(given)
    missing = [argument for argument in texts.required if argument not in given]
    if missing:
        raise McpError(_INVALID_PARAMS, f"Missing required arguments: {', '.join(missing)}")
    args, violations = texts.read(given)
    if violations:
        raise McpError(
            _INVALID_PARAMS,
            f"Invalid arguments for prompt {name}:\n" + "\n".join(describe(violations)),
            {META_VIOLATIONS: [violation.to_wire() for violation in violations]},
        )
    return args

"""`tools_for`: the tools of servers as an API of models describes them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import attrs

from .._util import final
from .._value import JSONObject, Value
from ..types import ToolDefinition
from ._compose import (
    Composer,
    SchemaLoss,
    SchemaSizeError,
    coded_name,
    find_fault,
    legal_name,
    mend,
    modernize,
)
from ._limits import Budget, StrictModeError
from ._providers import ModelApi, ProviderName, parse_arguments, provider_named
from ._restore import Restore
from ._subset import Adapter

#: Published for a tool whose schema no part can be taken of.
_OPEN: Final[JSONObject] = {"type": "object"}


@final
@attrs.frozen(eq=False, repr=False)
class ModelCall(Value):
    """A call of a tool by a model, ready for `client.call_tool(call.name, call.arguments)`.

    Attributes:
        id: The id of the call at the API, which its result must carry; None if it has none.
        name: The name of the tool at its server.
        arguments: The arguments, as the tool expects them.
        model_name: The name by which the model called it.
    """

    id: str | None
    name: str
    arguments: JSONObject
    model_name: str


class _Made(NamedTuple):
    """The input schema of one tool, adapted.

    Attributes:
        schema: The schema.
        losses: The differences.
        note: A text for the end of the description.
        restore: The way back for arguments; None if they stay as they are.
        strict: True for strict mode.
    """

    schema: JSONObject
    losses: list[SchemaLoss]
    note: str = ""
    restore: Restore | None = None
    strict: bool = False


@final
class ModelTools(list[JSONObject]):
    """Tool definitions of an API: the list that its parameter `tools` takes; `tools_for` makes it.

    It is an ordinary list, to which tools of the provider itself may be added.

    Attributes:
        report: The differences between the schemas of the servers and those that the model gets.
    """

    def __init__(
        self,
        provider: ModelApi,
        definitions: Iterable[JSONObject],
        names: Mapping[str, str],
        restores: Mapping[str, Callable[[object], Any]],
        report: Iterable[SchemaLoss],
    ) -> None:
        super().__init__(definitions)
        self.report = tuple(report)
        self._provider = provider
        self._names = names
        self._restores = restores

    def name_of(self, model_name: str) -> str:
        """Give the name of a tool at its server.

        Args:
            model_name: The name by which a model calls it.

        Returns:
            The name; a name of no tool stays as it is, so that the server says that it is unknown.
        """
        return self._names.get(model_name, model_name)

    def call_of(self, tool_call: Any) -> ModelCall:
        """Read a call in the reply of a model.

        Args:
            tool_call: The call, as a mapping or as an object of the provider's package: a
                `tool_use` block (`anthropic`), a member of `tool_calls` (`openai`), a
                `function_call` item (`openai-responses`), a part with a function call, or that
                call (`gemini`).

        Returns:
            The call, with the names and the values that the tool expects.

        Raises:
            ToolError: The arguments are no JSON object; the text is for the model.
            TypeError: It is no call of a tool.
        """
        call_id, model_name, sent = self._provider.read_call(tool_call)
        if not isinstance(model_name, str):
            raise TypeError(f"expected a call of a tool, got {type(tool_call).__name__}")
        arguments = parse_arguments(sent)
        restore = self._restores.get(model_name)
        if restore is not None:
            arguments = restore(arguments)
        return ModelCall(call_id, self.name_of(model_name), arguments, model_name)


def tools_for(
    provider: ProviderName, tools: Iterable[ToolDefinition], *, strict: bool = False
) -> ModelTools:
    """Describe tools to a model, within the documented limits of its API.

    Names with characters that the API does not take are changed; `ModelTools.call_of` changes them
    back. Input schemas are adapted: a keyword that the API does not take is left out, and told in
    the description. `ModelTools.report` lists what that changes.

    Args:
        provider: `anthropic` (Messages), `openai` (Chat Completions), `openai-responses`
            (Responses) or `gemini` (Gemini API and Vertex AI).
        tools: The tools, as `client.list_tools()` lists them.
        strict: Ask for strict mode, in which the arguments always fit the schema. A tool whose
            schema strict mode cannot express is described without it, and reported. `gemini` has
            no such mode.

    Returns:
        The value of the parameter `tools` of the API.

    Raises:
        ValueError: There is no such provider, two tools have one name, or `strict` is asked of
            `gemini`.
    """
    api = provider_named(provider)
    if strict and api.strict is None:
        raise ValueError(f"{provider} has no strict mode")
    listed = list(tools)
    names = _map_names([tool.name for tool in listed], api)
    report: list[SchemaLoss] = []
    definitions: list[JSONObject] = []
    restores: dict[str, Restore] = {}
    budget = Budget(api.limits) if strict and api.limits is not None else None
    for tool in listed:
        name = names[tool.name]
        made = _adapt(tool, api, budget)
        description = (tool.description or tool.title or tool.name) + made.note
        definitions.append(api.define(name, description, made.schema, made.strict))
        report += made.losses
        if made.restore is not None:
            restores[name] = made.restore
    if api.tools is not None and len(listed) > api.tools:
        text = f"{len(listed)} tools; the API documents at most {api.tools} in one request"
        report.append(SchemaLoss("", "", "tools", "narrower", text))
    if provider == "gemini":
        definitions = [{"functionDeclarations": definitions}] if definitions else []
    back = {new: old for old, new in names.items()}
    return ModelTools(api, definitions, back, restores, report)


def _map_names(names: list[str], api: ModelApi) -> dict[str, str]:
    """Give each tool a name that the API takes; a legal name stays."""
    if len(set(names)) < len(names):
        (twice, _), *_ = Counter(names).most_common(1)
        raise ValueError(f"two tools have the name {twice!r}; give the servers prefixes")
    plain = {name: api.illegal.sub("_", name) for name in names}
    counts = Counter(plain.values())
    # The order of the tools plays no part, and a legal name is never taken from its tool.
    return {
        name: short
        if len(short) <= api.length and (short == name or counts[short] == 1)
        else coded_name(name, api.illegal, api.length)
        for name, short in plain.items()
    }


def _adapt(tool: ToolDefinition, api: ModelApi, budget: Budget | None) -> _Made:
    """Adapt the input schema of a tool."""
    renamed: dict[str, str] = {}

    def rename(name: str) -> str:
        if api.illegal_key is None:
            return name
        new = legal_name(name, api.illegal_key, 64)
        if new != name:
            renamed[new] = name
        return new

    try:
        schema = modernize(tool.input_schema, rename)
        fault = find_fault(schema)
    except RecursionError:
        fault = "it is nested too deeply"
    if fault is not None:
        return _open(tool.name, fault)
    mended = list(mend(schema, tool.name))
    made = _describe(schema, tool.name, api, budget)
    if renamed:
        made = made._replace(restore=partial(_rename_back, renamed, made.restore))
    return made._replace(losses=[*mended, *made.losses])


def _describe(schema: JSONObject, tool: str, api: ModelApi, budget: Budget | None) -> _Made:
    """Adapt a schema without faults: strictly if asked to and possible, or else as the API can."""
    composer = Composer(schema, tool)
    try:
        root, note = composer.flatten(schema)
        if budget is not None and api.strict is not None:
            try:
                adapter = Adapter(schema, tool, api.strict)
                strict, restore = adapter.adapt_root(root)
                budget.take(strict)
            except (StrictModeError, SchemaSizeError, RecursionError) as error:
                composer.lose(*_reason(error), "not strict")
            else:
                losses = [*composer.losses, *adapter.losses]
                return _Made(strict, losses, note, restore, strict=True)
        if api.dialect is None:
            return _Made(root, list(composer.losses), note)
        adapter = Adapter(schema, tool, api.dialect)
        made = adapter.adapt_root(root).schema
    except (SchemaSizeError, RecursionError) as error:
        return _open(tool, _reason(error)[2])
    if not made.get("properties"):
        for key in made.keys() - {"type", "description"}:
            adapter.lose("", key, "the API takes no object without properties")
        made = dict(_OPEN)
    return _Made(made, [*composer.losses, *adapter.losses], note)


def _reason(error: Exception) -> tuple[str, str, str]:
    """Tell the place, the keyword and the text of a reason not to describe a schema."""
    if isinstance(error, StrictModeError):
        return error.path, error.keyword, error.text
    return "", "", "it has too many parts once its references are put in"


def _open(tool: str, fault: str) -> _Made:
    text = f"the schema is not described to the model: {fault}"
    return _Made(dict(_OPEN), [SchemaLoss(tool, "", "inputSchema", "looser", text)])


def _rename_back(renamed: Mapping[str, str], restore: Restore | None, value: Any) -> object:
    """Give properties their names back, after the values have theirs.

    The new names end in digests, so no name of a free-form object is one of them.
    """
    return _rename(renamed, value if restore is None else restore(value))


def _rename(renamed: Mapping[str, str], value: object) -> object:
    if isinstance(value, dict):
        return {renamed.get(key, key): _rename(renamed, each) for key, each in value.items()}
    return [_rename(renamed, each) for each in value] if isinstance(value, list) else value

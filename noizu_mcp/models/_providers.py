"""The APIs of models: their limits, and the shapes of their tools and calls.

Sources, read in November 2026, are named at each limit. The shapes follow the types in the
packages `anthropic`, `openai` and `google-genai`; `tests/models/test_shapes.py` compares them.
"""

import re
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final, Literal, NamedTuple

from .._errors import ToolError
from .._value import JSONObject
from ..jsonrpc import parse_json
from ._limits import ApiLimits, Size
from ._subset import Dialect

ProviderName = Literal["anthropic", "openai", "openai-responses", "gemini"]


class ModelApi(NamedTuple):
    """One API.

    Attributes:
        illegal: Finds the characters that a name of a tool cannot have.
        length: Characters of such a name.
        illegal_key: The same for the name of a property; None if all are taken.
        tools: Tools in one request; None for no documented limit.
        dialect: The dialect of schemas that are not strict; None for JSON Schema.
        strict: The dialect of strict schemas; None if there are none.
        limits: The limits of strict schemas.
        define: Writes a tool: its name, description, schema, and True if that is strict.
        read_call: Reads a call: its id, name and arguments.
    """

    illegal: re.Pattern[str]
    length: int
    illegal_key: re.Pattern[str] | None
    tools: int | None
    dialect: Dialect | None
    strict: Dialect | None
    limits: ApiLimits | None
    define: Callable[[str, str, JSONObject, bool], JSONObject]
    read_call: Callable[[object], tuple[str | None, str, object]]


def provider_named(name: str) -> ModelApi:
    """Find an API by its name.

    Raises:
        ValueError: The name is unknown.
    """
    if name not in PROVIDERS:
        raise ValueError(f"unknown provider {name!r}; there are: {', '.join(PROVIDERS)}")
    return PROVIDERS[name]


def member(call: object, name: str) -> Any:
    """Give a member of a mapping, or an attribute of an object of the provider's package."""
    return call.get(name) if isinstance(call, Mapping) else getattr(call, name, None)


def parse_arguments(arguments: object) -> JSONObject:
    """Read the arguments that a model sent.

    Args:
        arguments: A mapping, JSON text, or None for no arguments.

    Raises:
        ToolError: They are no JSON object; the text is for the model.
    """
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments.encode(errors="replace")) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            raise ToolError(f"The arguments are not JSON: {error}") from None
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise ToolError("The arguments must be a JSON object")
    return dict(arguments)


def _define_anthropic(name: str, description: str, schema: JSONObject, strict: bool) -> JSONObject:
    tool: JSONObject = {"name": name, "description": description, "input_schema": schema}
    return {**tool, "strict": True} if strict else tool


def _define_openai(name: str, description: str, schema: JSONObject, strict: bool) -> JSONObject:
    function: JSONObject = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": {**function, "strict": True} if strict else function}


def _define_responses(name: str, description: str, schema: JSONObject, strict: bool) -> JSONObject:
    # Without `strict` this API would try strict mode by itself.
    tool = {"type": "function", "name": name, "description": description}
    return {**tool, "parameters": schema, "strict": strict}


def _define_gemini(name: str, description: str, schema: JSONObject, _: bool) -> JSONObject:
    declaration: JSONObject = {"name": name, "description": description}
    # An object without properties is refused there; no parameters are written by leaving it out.
    if not schema.get("properties"):
        return declaration
    return {**declaration, "parameters": _to_openapi(schema)}


def _to_openapi(schema: JSONObject) -> JSONObject:
    """Write an adapted schema as a `Schema` of Gemini: null is a flag, types are in capitals."""
    made = dict(schema)
    declared = made.pop("type", None)
    if isinstance(declared, list):
        made["nullable"] = True
        declared = next(each for each in declared if each != "null")
    if declared is not None:
        made["type"] = declared.upper()
    if "enum" in made:
        made["enum"] = [each for each in made["enum"] if each is not None]
    if "anyOf" in made:
        real = [each for each in made.pop("anyOf") if each != {"type": "null"}]
        if len(real) < len(schema["anyOf"]):
            made["nullable"] = True
        parts = [_to_openapi(each) for each in real]
        made = {**parts[0], **made} if len(parts) == 1 else {**made, "anyOf": parts}
    if "items" in made:
        made["items"] = _to_openapi(made["items"])
    if "properties" in made:
        made["properties"] = {key: _to_openapi(each) for key, each in made["properties"].items()}
    return made


def _read_anthropic(call: object) -> tuple[str | None, str, object]:
    return member(call, "id"), member(call, "name"), member(call, "input")


def _read_openai(call: object) -> tuple[str | None, str, object]:
    function = member(call, "function")
    return member(call, "id"), member(function, "name"), member(function, "arguments")


def _read_responses(call: object) -> tuple[str | None, str, object]:
    return member(call, "call_id"), member(call, "name"), member(call, "arguments")


def _read_gemini(call: object) -> tuple[str | None, str, object]:
    # A part of a message, in JSON or as an object of the package, or the call in it.
    inner = member(call, "functionCall") or member(call, "function_call") or call
    return member(inner, "id"), member(inner, "name"), member(inner, "args")


_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
# OpenAI, "Structured Outputs", "Supported schemas"; Anthropic, "Structured outputs", "JSON Schema
# limitations": both list these and no others, except `uri`.
_FORMATS: Final = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]
)
_NO_LIMIT: Final = Size(*[inf] * len(Size._fields))

# Anthropic, "Define tools": the name matches ^[a-zA-Z0-9_-]{1,64}$. Its API refuses properties
# whose names do not match ^[a-zA-Z0-9_.-]{1,64}$. "Structured outputs": no bounds of numbers,
# texts and lists, except `minItems` of 0 and 1, no recursion; 20 strict tools in a request, 24
# optional properties and 16 unions in all of them.
_ANTHROPIC: Final = ModelApi(
    illegal=re.compile("[^A-Za-z0-9_-]"),
    length=64,
    illegal_key=re.compile("[^A-Za-z0-9_.-]"),
    tools=None,
    dialect=None,
    strict=Dialect(
        keywords=frozenset({"pattern", "format", "minItems"}),
        values={"format": _FORMATS | {"uri"}, "minItems": (0, 1)},
        scalars=_SCALARS,
        strict=True,
    ),
    limits=ApiLimits(_NO_LIMIT, _NO_LIMIT._replace(optional=24, unions=16), tools=20),
    define=_define_anthropic,
    read_call=_read_anthropic,
)
# OpenAI, API reference: names of a-z, A-Z, 0-9, underscores and dashes, at most 64 characters; at
# most 128 functions in a request of Chat Completions. "Structured Outputs": see `_FORMATS`; 5,000
# properties, 10 levels, 1,000 enum values, 120,000 characters of names and enum values, 15,000 in
# one enum of more than 250 values; every property is required, and every object closed.
_OPENAI: Final = ModelApi(
    illegal=re.compile("[^A-Za-z0-9_-]"),
    length=64,
    illegal_key=None,
    tools=128,
    dialect=None,
    strict=Dialect(
        keywords=frozenset(
            {
                *("pattern", "format", "multipleOf", "maximum", "exclusiveMaximum", "minimum"),
                *("exclusiveMinimum", "minItems", "maxItems"),
            }
        ),
        values={"format": _FORMATS},
        scalars=_SCALARS,
        strict=True,
        all_required=True,
        references=True,
    ),
    limits=ApiLimits(
        _NO_LIMIT._replace(
            properties=5_000, depth=10, values=1_000, characters=120_000, largest=15_000
        ),
        _NO_LIMIT,
        tools=inf,
    ),
    define=_define_openai,
    read_call=_read_openai,
)
# Gemini, API reference: a `Schema` is a subset of OpenAPI 3.0, without references and open
# objects; `enum` is a list of texts. The name of a function has at most 64 characters of a-z, A-Z,
# 0-9, underscores, dots and dashes, that of a parameter no dots and dashes (Vertex AI,
# `FunctionDeclaration`); both begin with a letter or an underscore.
_GEMINI: Final = ModelApi(
    illegal=re.compile("[^A-Za-z0-9_.-]|^[^A-Za-z_]"),
    length=64,
    illegal_key=re.compile("[^A-Za-z0-9_]|^[^A-Za-z_]"),
    tools=None,
    dialect=Dialect(
        keywords=frozenset(
            {
                *("minLength", "maxLength", "pattern", "format", "minimum", "maximum"),
                *("minItems", "maxItems", "minProperties", "maxProperties"),
            }
        ),
        values={"format": ("date-time",)},
        scalars=frozenset({"string"}),
        strict=False,
    ),
    strict=None,
    limits=None,
    define=_define_gemini,
    read_call=_read_gemini,
)

PROVIDERS: Final[Mapping[str, ModelApi]] = {
    "anthropic": _ANTHROPIC,
    "openai": _OPENAI,
    "openai-responses": _OPENAI._replace(
        tools=None, define=_define_responses, read_call=_read_responses
    ),
    "gemini": _GEMINI,
}

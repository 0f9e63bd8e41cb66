"""`arguments`, `invalid_arguments` and `results`: strategies for tools."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..._errors import DefinitionError, Problem
from ..._limits import DEFAULTS
from ..._util import got
from ..._value import JSON, JSONObject
from ...components import Toolkit, as_registration
from ...schema import CompiledSchema, Document, Shape, coerce_text, compile_schema, describe
from ...types import ToolDefinition
from ._schemas import load_checked
from ._violation import Unsatisfiable

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

# `arguments` of a call is an object in any case (server/tools, Calling Tools).
_OBJECT: Final = {"type": "object"}
#: Keywords beside which no member is expected that `properties` does not name.
_PLAIN: Final = frozenset(
    {
        *("type", "properties", "required", "title", "description", "default", "examples"),
        *("$schema", "$id", "$comment", "$defs", "definitions"),
    }
)


class Schemas(NamedTuple):
    """The schemas of a tool.

    Attributes:
        name: The name of the tool.
        input: The schema of the arguments.
        output: The schema of the structured content, or None.
        accepts: Tells if a server takes arguments.
        is_typed: True if a class reads the arguments, which may refuse what the schema accepts.
    """

    name: str
    input: CompiledSchema
    output: CompiledSchema | None
    accepts: Callable[[JSON], bool]
    is_typed: bool


def arguments(tool: object) -> "SearchStrategy[JSONObject]":
    """Return the strategy for the arguments that a tool takes, as a client sends them.

    Texts have the `format` of their field, and values that only the class of a field refuses are
    left out. So are arguments with members that the schema neither names nor excludes.

    Args:
        tool: A `Tool` class or instance, a method of a `Toolkit`, a kit with one tool, a function,
            a registration, or the `ToolDefinition` of a server, also as a mapping.

    Raises:
        Unsatisfiable: No arguments fit; now, or when some are drawn.
        DefinitionError: The tool is wrong.
        TypeError: It is no tool, or several.
        ImportError: Hypothesis is not installed.
    """
    found = schemas_of(tool)
    return _fitting(found.input, _closed(found.input.schema), _OBJECT)


def invalid_arguments(tool: object) -> "SearchStrategy[JSONObject]":
    """Return the strategy for arguments that a tool refuses: near misses, as of `violating`.

    Each is an object. Hypothesis notes the broken keyword and its place in the output of a failing
    test, and counts the keywords in its statistics. Text that the tool reads as another type, such
    as `"3"` for 3, is left out; where only the definition is known, text that may be read so.

    Args:
        tool: As for `arguments`.

    Raises:
        Unsatisfiable: The tool takes every object; now, or when arguments are drawn.
        DefinitionError: The tool is wrong.
        TypeError: It is no tool, or several.
        ImportError: Hypothesis is not installed.
    """
    found = schemas_of(tool)
    loaded = load_checked()
    try:
        made = loaded.checked(
            Document(found.input.schema),
            "near",
            lambda value: not found.accepts(value),
            loaded.FORMATS,
            beside=(_OBJECT,),
            asserted=found.is_typed,
        )
    except Unsatisfiable:
        raise Unsatisfiable(f"the tool {found.name} takes every object") from None
    noted: SearchStrategy[JSONObject] = loaded.noted(made, found.input.violations, describe)
    return noted


def results(tool: object) -> "SearchStrategy[JSON]":
    """Return the strategy for the structured content that a tool declares.

    Args:
        tool: As for `arguments`.

    Raises:
        Unsatisfiable: No value fits; now, or when one is drawn.
        DefinitionError: The tool is wrong.
        TypeError: It is no tool, or several, or declares no output.
        ImportError: Hypothesis is not installed.
    """
    found = schemas_of(tool)
    if found.output is None:
        raise TypeError(f"the tool {found.name} declares no output")
    return _fitting(found.output, found.output.schema)


def _fitting(compiled: CompiledSchema, schema: JSON, *beside: JSON) -> "SearchStrategy[JSON]":
    loaded = load_checked()
    made: SearchStrategy[JSON] = loaded.checked(
        Document(schema), "is", compiled.is_valid, loaded.FORMATS, beside=beside
    )
    return made


def _closed(schema: JSON) -> JSON:
    """Exclude members that a schema does not name, where nothing else in it asks for them."""
    if not isinstance(schema, Mapping) or not schema.keys() <= _PLAIN:
        return schema
    named = schema.get("properties")
    if not named or not named.keys() >= set(schema.get("required", ())):
        return schema
    return {**schema, "additionalProperties": False}


def schemas_of(tool: object) -> Schemas:
    """Return the schemas of a tool in any of its forms; see `arguments`."""
    if isinstance(tool, ToolDefinition):
        tool = tool.to_wire()
    if isinstance(tool, Mapping):
        compiled = compile_schema(tool["inputSchema"])
        output = tool.get("outputSchema")
        return Schemas(
            tool["name"],
            compiled,
            None if output is None else compile_schema(output),
            _DefinedArguments(compiled).accepts,
            is_typed=False,
        )
    declared, overrides = _declared(tool)
    options = {**declared.options, **overrides}
    # The schemas belong to the class; no instance is needed.
    fields = declared.fields(None)
    shape, output = fields["input"], fields["output"]
    coerce = options.get("coerce")
    reads_text = shape.coerces if coerce is None else coerce
    return Schemas(
        options["name"],
        shape.compiled,
        output and output.compiled,
        lambda value: _takes(shape, value, reads_text=reads_text),
        is_typed=bool(shape.refusals),
    )


def _takes(shape: Shape, value: JSON, *, reads_text: bool) -> bool:
    """Tell if a server takes arguments, with the text in them read for other types if need be."""
    if shape.try_build(value)[0]:
        return True
    return reads_text and shape.try_build(coerce_text(shape, value, DEFAULTS))[0]


class _DefinedArguments:
    """The arguments of a tool of which only the definition is known.

    Args:
        compiled: The schema.
    """

    def __init__(self, compiled: CompiledSchema) -> None:
        self.schema = compiled.schema
        self._is_valid = compiled.is_valid

    def accepts(self, value: JSON) -> bool:
        """Tell whether a server may take a value; many read text as other types."""
        return self._is_valid(value) or self._is_valid(coerce_text(self, value, DEFAULTS))


def _declared(tool: object) -> tuple[Any, Mapping[str, object]]:
    """Return the declaration of a tool, and the options of its registration.

    Raises:
        DefinitionError: The tool is wrong.
        TypeError: It is no tool, or several.
    """
    method = _kit_method(tool)
    if method is not None:
        return method, {}
    registration = as_registration(tool, "tools")
    found: tuple[Any, ...] = getattr(registration.target, "__mcp__", ())
    problems: tuple[Problem, ...] = getattr(registration.target, "problems", ())
    if problems:
        raise DefinitionError(problems)
    if len(found) == 1 and found[0].kind.feature == "tools":
        return found[0], registration.overrides
    if len(found) > 1:
        names = ", ".join(each.options["name"] for each in found)
        raise TypeError(f"a kit of several tools ({names}); pass one of its methods")
    raise TypeError(f"expected a tool: a class, a method of a kit or a function; {got(tool)}")


def _kit_method(tool: object) -> Any:
    """Return the declaration of a method of a kit; None if it is something else."""
    function = getattr(tool, "__func__", tool)
    owner = getattr(tool, "__self__", None)
    if owner is not None:
        kits: Iterator[type[object]] = iter((owner if isinstance(owner, type) else type(owner),))
    else:
        kits = _kits(Toolkit)
    for kit in kits:
        for declared in getattr(kit, "__mcp__", ()):
            if getattr(declared.handler, "function", None) is function:
                return declared
    return None


def _kits(base: type[object]) -> Iterator[type[object]]:
    """Yield all classes of kits: a function does not know the class that it is a method of."""
    for kit in base.__subclasses__():
        yield kit
        yield from _kits(kit)

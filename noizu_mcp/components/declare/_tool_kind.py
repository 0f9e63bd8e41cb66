"""The kind of tools: how their classes, kits and functions are read."""

from collections.abc import Mapping
from inspect import isclass
from typing import Final

from ...types import ToolDefinition
from ..handlers._bound import ToolSpec
from ..handlers._handler import CallForm, Handler
from ._class_schemas import ClassSchemas, call_problems, open_object
from ._component import ComponentReader
from ._options import options_of
from ._statement import ComponentKind


def _read_parts(reader: ComponentReader, handler: Handler | None) -> Mapping[str, object]:
    """Read the schemas, and check the options that depend on `call`."""
    if handler is not None:
        for option, text in call_problems(handler, reader.options, reader.declaration.own):
            reader.problem(option, text)
    described = reader.descriptions(handler)
    schemas = ClassSchemas(
        reader.declaration,
        "call",
        handler,
        reader.options,
        described,
        on_function=not reader.in_class,
    )
    # No class declares an input: a class `Args` or a mapping `params` was then meant to be one.
    if schemas.input is open_object() or (handler and handler.properties):
        reader.refuse_other_inputs("Input", handler)
    return schemas.parts()


TOOL: Final = ComponentKind(
    feature="tools",
    noun="tool",
    options=options_of("Tool"),
    overrides=options_of("tool"),
    of_functions=options_of("tool_function"),
    inputs=("input_schema", "input", "Input"),
    members={"Input": isclass, "Output": isclass},
    methods={"call": CallForm(("args", "ctx"))},
    parts=_read_parts,
    instead_of_mark="a Tool has one method, call",
    definition=ToolDefinition,
    bound=ToolSpec,
)

"""The kind of prompts: how their classes and functions are read."""

from collections.abc import Mapping
from inspect import isclass
from typing import Final

from ...types import PromptArgument, PromptDefinition
from ..handlers._bound import PromptSpec
from ..handlers._completion import completer
from ..handlers._handler import CallForm, Handler
from ..handlers._text_values import TextValues, impossible
from ._arguments import note_misfits, read_arguments
from ._component import ComponentReader
from ._options import options_of
from ._statement import ComponentKind, takes


def _read_parts(reader: ComponentReader, handler: Handler | None) -> Mapping[str, object]:
    """Read the arguments."""
    arguments = read_arguments(reader, handler)
    # server/prompts: the arguments of `prompts/get` are a map of texts, so a field must be readable
    # from one.
    text = "an argument is a text; declare it as str, int, float, bool, an Enum or a Literal"
    note_misfits(reader, arguments, [(name, text) for name in impossible(arguments.fields)])
    if handler is not None and (handler.properties or not arguments.name):
        reader.refuse_other_inputs("Arguments", handler)
    # prompts/list has no schema for arguments, only name, title, description and `required`.
    shape, complete = arguments.shape, reader.handlers["complete"]
    texts = None if shape is None else TextValues(shape)
    required = () if texts is None else texts.required
    titles = {} if shape is None else shape.titles
    entries = [
        PromptArgument(
            name,
            title=titles[name][0] if name in titles else None,
            description=schema.get("description"),
            required=name in required or None,
        )
        for name, schema in arguments.fields.items()
    ]
    return {
        "members": {"arguments": entries},
        "fields": lambda instance: {
            "texts": texts,
            "arguments": tuple(arguments.fields),
            "required": required,
            "complete": completer(complete, instance, arguments.sources),
        },
    }


PROMPT: Final = ComponentKind(
    feature="prompts",
    noun="prompt",
    options=options_of("Prompt"),
    overrides=options_of("prompt"),
    of_functions=options_of("prompt_function"),
    inputs=("Arguments", "arguments"),
    members={"Arguments": isclass, "complete": takes(3, 4)},
    methods={
        "get": CallForm(("args", "ctx")),
        "complete": CallForm(("argument", "prefix", "ctx"), least=2),
    },
    parts=_read_parts,
    definition=PromptDefinition,
    bound=PromptSpec,
)

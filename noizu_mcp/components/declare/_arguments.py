"""The arguments that a prompt declares, and the variables that a template declares."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..._util import called
from ...schema import Fault, Shape, read_fields, read_parameters, read_shape
from ..handlers._completion import Source, read_sources
from ..handlers._handler import Handler
from ..handlers._signature import declares_input
from ._component import ComponentReader
from ._statement import NOTHING, is_method


class DeclaredArguments(NamedTuple):
    """Declared arguments or variables.

    Attributes:
        name: The declaration: the class `Arguments`, or `arguments`; empty without a declaration.
        owner: The class, if it is a class.
        shape: The fields; None if none are declared, and after problems.
        fields: The schema of each, also after problems.
        sources: The sources of completions.
    """

    name: str = ""
    owner: type | None = None
    shape: Shape | None = None
    fields: Mapping[str, Mapping[str, Any]] = NOTHING
    sources: Mapping[str, Source] = NOTHING


def read_arguments(reader: ComponentReader, handler: Handler | None) -> DeclaredArguments:
    """Read the class `Arguments` or `arguments = {…}`, of a class or of the nearest base.

    Args:
        reader: The class; takes the problems.
        handler: The method that answers; its docstring may describe arguments too.

    Returns:
        The declaration; after problems, as much of it as can be read.
    """
    name, declared = _find(reader)
    described = reader.descriptions(handler)
    # A class may also remove the arguments of its base.
    if declared is None and handler is not None:
        method = next(iter(reader.kind.methods))
        whole = handler.taking("args")
        if handler.properties:
            read = read_parameters(handler.function, handler.properties, descriptions=described)
            return _arguments(reader, method, None, *read)
        if whole is not None and isinstance(whole.annotation, str):
            reader.problem(
                f"{method}.args",
                "the annotation names something that is not there when the class is made; import"
                " it, not for type checkers alone, or declare a class Arguments",
            )
        elif whole is not None and declares_input(whole):
            declared, name = whole.annotation, f"{method}.args"
    if declared is None:
        return DeclaredArguments()
    if name == "Arguments" and not isinstance(declared, type):
        reader.problem(name, f"must be a class; write arguments = … for {called(declared)}")
        return DeclaredArguments(name)
    types = reader.declaration.types_of(reader.declaration.owner_of(name))
    read = read_shape(declared, descriptions=described, types=types)
    return _arguments(reader, name, declared, *read)


def _arguments(
    reader: ComponentReader, name: str, declared: object, shape: Shape | None, faults: list[Fault]
) -> DeclaredArguments:
    """Note the faults of a declaration, and read its completions."""
    note = reader.declaration.faults
    member = name.partition(".")[0]
    note(name, faults, member)
    owner = declared if isinstance(declared, type) else None
    # After faults the names and the completions are read all the same: the class statement then
    # reports their problems together with problems of the types.
    fields, completions = NOTHING, NOTHING
    if shape is not None:
        fields, completions = shape.schema.get("properties", {}), shape.completions
    elif declared is not None:
        fields, completions = read_fields(declared)
    sources, faults = read_sources(owner, completions)
    note(name, faults, member)
    return DeclaredArguments(name, owner, shape, fields, sources)


def _find(reader: ComponentReader) -> tuple[str, object]:
    """Find the nearest declaration: its name, and its value."""
    for body in reader.declaration.bodies():
        # A component may well have a method of that name.
        names = [
            name
            for name in ("arguments", "Arguments")
            if name in body and not is_method(body[name])
        ]
        if len(names) > 1:
            reader.problem("arguments", "the class Arguments declares them too; keep one of them")
        if names:
            return names[-1], body[names[-1]]
    return "", None


def note_misfits(
    reader: ComponentReader, arguments: DeclaredArguments, texts: Iterable[tuple[str, str]]
) -> None:
    """Note problems of the declared arguments.

    Args:
        reader: The class; takes the problems.
        arguments: The arguments.
        texts: The name of an argument, or "" for the whole, with the text of the problem.
    """
    faults = [Fault((name,) if name else (), text, arguments.owner) for name, text in texts]
    member = arguments.name.partition(".")[0]
    reader.declaration.faults(arguments.name, faults, member)

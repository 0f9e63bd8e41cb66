"""`Schema`: a class whose annotations are a JSON Schema, and whose instances are the arguments."""

from collections.abc import Iterable
from typing import Any, dataclass_transform

from .._errors import DefinitionError, Problem
from .._source import locate
from ._declared_schema import SHAPE, read_annotation
from .declare._classes import freeze
from .declare._field import argument, field
from .jsonschema._fault import Fault


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field, argument))
class Schema:
    """Base of classes that declare fields by annotation; a subclass is a frozen attrs class.

    A class that stands by itself is checked when its statement ends. One inside another class is
    checked by the class that uses it, together with everything else there.

    Raises:
        DefinitionError: When a class statement at module or function level declares something
            that cannot be a schema; it lists every problem.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__()
        freeze(cls, keywords)
        if _stands_alone(cls) and not getattr(cls, "__parameters__", ()):
            shape, faults, unresolved = read_annotation(cls)
            if faults and not unresolved:
                raise DefinitionError(to_problems(faults, cls.__qualname__.rpartition(".")[2]))
            if shape is not None:
                setattr(cls, SHAPE, shape)


def _stands_alone(cls: type) -> bool:
    outer = cls.__qualname__.rpartition(".")[0]
    return not outer or outer.endswith("<locals>")


def to_problems(faults: Iterable[Fault], where: str) -> list[Problem]:
    """Return faults as the problems of a `DefinitionError`, with file and line where known.

    Args:
        faults: From `read_shape` and its kin.
        where: The dotted name that their paths continue: `SearchDocs.Input`.
    """
    return [_problem(fault, where) for fault in faults]


def _problem(fault: Fault, where: str) -> Problem:
    file, line = None, None
    if fault.owner is not None:
        member = str(fault.path[-1]) if fault.path else None
        file, line = locate(fault.owner.__module__, fault.owner.__qualname__, member)
    text = fault.text
    if fault.line is not None:
        text = f"{text} (line {fault.line}, column {fault.column} of the text)"
    return Problem(".".join([where, *map(str, fault.path)]), text, file, line)

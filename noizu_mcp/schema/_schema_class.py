"""`Schema`: classes whose annotations are a JSON Schema, and whose instances are values of it."""

from collections.abc import Iterable
from inspect import get_annotations
from typing import dataclass_transform

from .._class_body import BODY, BodyMeta, replacements
from .._errors import DefinitionError, Problem
from .._source import locate
from ._declared_schema import SHAPE, read_annotation
from .declare._annotations import infer
from .declare._classes import define
from .declare._field import argument, field
from .declare._state import ParseState
from .jsonschema._violation import Fault


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field, argument))
class Schema(metaclass=BodyMeta):
    """Base of classes that declare fields by annotation; a subclass is a frozen attrs class.

    Its constructor takes keyword arguments only. A subclass at module or function level is checked
    when its statement ends; one inside another class is checked, with everything else there, by the
    class that uses it.

    Raises:
        DefinitionError: From the class statement of a subclass; it lists every problem.
    """

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__()
        twice = replacements(vars(cls)[BODY], cls.__name__, get_annotations(cls))
        define(cls, keywords, [(each.where.partition(".")[2], each.text) for each in twice])
        outer, _, name = cls.__qualname__.rpartition(".")
        # A generic class is complete once its parameters stand for something.
        alone = not outer or outer.endswith("<locals>")
        if alone and not getattr(cls, "__parameters__", ()):
            state = ParseState(infer, undecided=True)
            shape, faults = read_annotation(state, cls)
            if faults and not state.unresolved:
                raise DefinitionError(to_problems(faults, name))
            # An output publishes another schema than an input for types of pydantic.
            if shape is not None and not state.sided:
                setattr(cls, SHAPE, shape)


def to_problems(faults: Iterable[Fault], where: str) -> list[Problem]:
    """Return faults as the problems of a `DefinitionError`, with file and line where known.

    Args:
        faults: The faults of a declaration, from `read_shape` or one of the other readers.
        where: The dotted name that their paths continue: `SearchDocs.Input`.
    """
    problems: list[Problem] = []
    for fault in faults:
        file, line = None, None
        if fault.owner is not None:
            member = str(fault.path[-1]) if fault.path else None
            file, line = locate(fault.owner.__module__, fault.owner.__qualname__, member)
        text = fault.text
        if fault.line is not None:
            text = f"{text} (line {fault.line}, column {fault.column} of the text)"
        problems.append(Problem(".".join([where, *map(str, fault.path)]), text, file, line))
    return problems

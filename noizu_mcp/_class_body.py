"""The namespace of a class statement, which records its assignments, and its metaclass.

Python keeps the last definition of a name and drops the others. `ClassBody` records each definition
that is replaced before it was read. The class itself gets an ordinary `__dict__`.
"""

import sys
from abc import ABCMeta
from collections.abc import Container, Iterator, Mapping
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, overload

from ._errors import DefinitionError, Problem
from ._source import problem_at
from ._util import relative_path

# A statement that stores a name: its code, and the offset of its last instruction.
_Place = tuple[CodeType, int]

#: What `overload` returns: a stand-in that is there to be replaced.
OVERLOAD: Final = overload(lambda: None)
#: On a class that is being made: the namespace of its statement.
BODY: Final = "__mcp_body__"
#: Modules of Python whose functions make classes.
_MAKERS: Final = ("types", "typing", "abc")


class _Replaced(NamedTuple):
    """A definition that was replaced before anything had read it."""

    name: str
    old: object
    new: object
    before: _Place
    place: _Place


class ClassBody(dict[str, Any]):
    """The namespace of a class statement.

    Attributes:
        marks: The functions that a decorator has marked in this body, each with its options.
    """

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[tuple[Any, Mapping[str, object]]] = []
        self._replaced: list[_Replaced] = []
        # Where each name was stored that has not been read since.
        self._unread: dict[str, _Place] = {}

    def __getitem__(self, name: str) -> object:
        # `x.setter`, `call = cached(call)` and `tools += […]` read the old value: it is not lost.
        self._unread.pop(name, None)
        return super().__getitem__(name)

    def __delitem__(self, name: str) -> None:
        self._unread.pop(name, None)
        super().__delitem__(name)

    def __setitem__(self, name: str, value: object) -> None:
        frame = sys._getframe(1)
        if name == "__annotations__" and value == {}:
            value = _Annotations(self)
        self.note(name, value, (frame.f_code, frame.f_lasti))
        super().__setitem__(name, value)

    def note(self, name: str, value: object, place: _Place, key: str = "") -> None:
        """Note that a name is stored.

        Args:
            name: The name.
            value: Its new value; for an annotation the annotation.
            place: The statement.
            key: Tells annotations from values.
        """
        before = self._unread.get(key + name)
        # The same place again is a loop.
        if before is not None and before != place:
            old = _ANNOTATION if key else self.get(name)
            self._replaced.append(_Replaced(name, old, value, before, place))
        self._unread[key + name] = place

    def replaced(self) -> Iterator[object]:
        """Yield the values that others have replaced, unread."""
        return (each.old for each in self._replaced)

    def lost(self, known: Container[str]) -> Iterator[tuple[str, str, str, int]]:
        """Find the definitions that the body replaces, unread, on the same level.

        Args:
            known: The names whose values are declarations, too; of other names only functions,
                classes and descriptors are.

        Yields:
            The name, the text of the problem, and the file and line of the second definition; each
            name once.
        """
        told = set()
        for name, old, new, before, place in self._replaced:
            is_own = not name.strip("_")
            is_definition = isinstance(old, type) or hasattr(type(old), "__get__")
            if name in told or is_own or not (is_definition or name in known):
                continue
            if old is new or old is OVERLOAD or _is_conditional(place):
                continue
            told.add(name)
            text = (
                f"replaces the definition in line {_position(before)[0]}, which is lost; rename"
                " one of them, or take it out"
            )
            yield name, text, relative_path(place[0].co_filename), _position(place)[0] or 0


class _Annotations(dict[str, Any]):
    """The annotations of a body; records a name that is annotated twice."""

    def __init__(self, body: ClassBody) -> None:
        super().__init__()
        self._body = body

    def __setitem__(self, name: str, annotation: object) -> None:
        frame = sys._getframe(1)
        self._body.note(name, annotation, (frame.f_code, frame.f_lasti), ":")
        super().__setitem__(name, annotation)


# Stands for the old value of an annotation: a field, which is a definition.
_ANNOTATION: Final = property()


def _position(place: _Place) -> tuple[int | None, int | None]:
    """Return the line and the column of a statement; None for what Python does not know."""
    code, offset = place
    line, _, column, _ = list(code.co_positions())[offset // 2]
    return line, column


def _is_conditional(place: _Place) -> bool:
    """Tell whether a statement stands under `if`, `try` and the like: further to the right."""
    code, offset = place
    positions = list(code.co_positions())
    # Instructions that no statement of the body stands for have column 0.
    columns = [column for _, _, column, _ in positions if column]
    column = positions[offset // 2][2]
    return column is None or column > min(columns, default=0)


if TYPE_CHECKING:
    _Base = ABCMeta
else:
    # The metaclass of protocols, a subclass of ABCMeta: a class may be both.
    _Base = type(Protocol)


class BodyMeta(_Base):
    """A metaclass that watches the body of its classes, and mixes with ABC, Protocol and Generic.

    A class that Python itself cannot make is a `DefinitionError` at the line of its statement.
    """

    # Classes of this metaclass are not protocols; the check of `Protocol` would cost time.
    __instancecheck__ = ABCMeta.__instancecheck__

    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **_: object) -> ClassBody:
        return ClassBody()

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **keywords: object
    ) -> Any:
        frame = statement_frame()
        ordinary = dict(namespace)
        # A class that `type(…)` makes would get the module of this file.
        ordinary.setdefault("__module__", frame.f_globals.get("__name__", "__main__"))
        if isinstance(ordinary.get("__annotations__"), _Annotations):
            ordinary["__annotations__"] = dict(ordinary["__annotations__"])
        # For `__init_subclass__`, which is not given the body.
        ordinary[BODY] = namespace
        try:
            cls = super().__new__(mcs, name, bases, ordinary, **keywords)
        except (TypeError, ValueError) as error:
            if isinstance(error, DefinitionError) or not _is_of_python(error):
                raise
            text = f"Python cannot make the class: {' '.join(str(error).split())}"
            raise DefinitionError([problem_at(name, text, frame)]) from None
        type.__delattr__(cls, BODY)
        return cls


def _is_of_python(error: BaseException) -> bool:
    """Tell whether Python raised an error, and not code of the author in `__set_name__`."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = trace.tb_frame.f_globals.get("__name__") if trace is not None else None
    return name in (__name__, *_MAKERS)


def statement_frame() -> FrameType:
    """Find the frame that runs a class statement: the first one outside of metaclasses."""
    frame = sys._getframe(1)
    # `types.new_class` has a frame, too.
    while frame.f_back is not None and (
        frame.f_code.co_name in ("__new__", "__init_subclass__")
        or frame.f_globals.get("__name__") in _MAKERS
    ):
        frame = frame.f_back
    return frame


def replacements(body: object, name: str, known: Container[str]) -> list[Problem]:
    """Give the problems of the names that a class body defines twice.

    Args:
        body: The namespace of the statement.
        name: The name of the class.
        known: See `ClassBody.lost`.
    """
    lost = body.lost(known) if isinstance(body, ClassBody) else ()
    return [Problem(f"{name}.{each}", text, file, line) for each, text, file, line in lost]

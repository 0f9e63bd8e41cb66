"""The metaclass of what users subclass: a class statement is read once, and checked as a whole.

Each kind of component says in `_read_class` how its body is read. Whatever is wrong is collected,
so that one `DefinitionError` lists it all, each problem with its place in the source.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, Final

from .._errors import DefinitionError, Problem
from .._source import locate
from .._util import relative_path
from ..schema import Fault
from ._misses import near_misses
from ._options import Table, read_options

#: Options that belong to one class; a subclass does not take them over.
_NEVER_INHERITED: Final = ("name", "title", "abstract")


class Declaration:
    """A class statement that is being read.

    Attributes:
        cls: The new class.
        given: The names of the options that this statement gives, right or wrong.
        own: Those that are right.
        options: Those of its bases too, nearest first.
        scope: The names that annotations written as text may use beside the module's.
        problems: What is wrong so far.
    """

    def __init__(
        self, cls: type, table: Table, keywords: Mapping[str, Any], frame: FrameType
    ) -> None:
        self.cls = cls
        self.frame = frame
        self.scope = {**frame.f_locals, **vars(cls)}
        self.problems: list[Problem] = []
        self.own = self._own_options(table, keywords)
        self.options = self._with_bases(table)
        self._check_roots()
        members = getattr(cls, "__mcp_members__", {})
        for name, meant in near_misses(cls, table, members):
            if meant not in self.given:
                text = (
                    f"is not an option; did you mean {meant!r}? (begin a name of your own with _)"
                )
                self.problem(name, text, name)

    def _check_roots(self) -> None:
        """Refuse a class that is two kinds of component: the second one would be ignored."""
        roots = [base for base in self.cls.__mro__[1:] if is_root(base)]
        if len(roots) > 1:
            names = " and a ".join(root.__name__ for root in roots)
            self.problem("", f"is a {names} in one; write a class for each")

    def _own_options(self, table: Table, keywords: Mapping[str, Any]) -> dict[str, Any]:
        attributes = option_attributes(self.cls, table)
        for name in keywords.keys() & attributes.keys():
            self.problem(name, "given as a class keyword and as an attribute; keep one of them")
        self.given = frozenset({**attributes, **keywords})
        good, bad = read_options(table, {**attributes, **keywords})
        for name, text in bad:
            self.problem(name, text, member=name)
        return good

    def _with_bases(self, table: Table) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for base in reversed(self.cls.__mro__[1:]):
            found = vars(base).get("__mcp_options__")
            if found is None:
                found = self._mixin_options(base, table)
            options |= {k: v for k, v in found.items() if k not in _NEVER_INHERITED}
        return options | self.own

    def _mixin_options(self, base: type, table: Table) -> dict[str, Any]:
        """Read the options of a base that is no component: attributes that nobody checked yet."""
        good, bad = read_options(table, option_attributes(base, table))
        for name, text in bad:
            if name not in self.given and name not in _NEVER_INHERITED:
                self.problem(name, text, name, base)
        return good

    @property
    def abstract(self) -> bool:
        """Whether this is a base class for others, and no component itself."""
        return bool(self.own.get("abstract", False))

    def problem(
        self, path: str, text: str, member: str | None = None, owner: type | None = None
    ) -> None:
        """Note a problem.

        Args:
            path: What is wrong, from the class: `Input.limit`; "" for the class itself.
            text: What is wrong and what to write instead.
            member: The attribute of the owner whose line is shown, if it has one.
            owner: The class whose source is searched; the new one by default.
        """
        owner = owner or self.cls
        file, line = self._place(owner, member)
        where = f"{self.cls.__name__}.{path}" if path else self.cls.__name__
        self.problems.append(Problem(where, text, file, line))

    def take(self, problem: Problem, member: str) -> None:
        """Note a problem that was found elsewhere; one with a line of its own keeps it.

        Args:
            problem: The problem; `where` begins at the class.
            member: The attribute of the class whose line is shown, for one without.
        """
        if problem.line is None:
            self.problem(problem.where, problem.text, member)
        else:
            where = f"{self.cls.__name__}.{problem.where}"
            self.problems.append(Problem(where, problem.text, problem.file, problem.line))

    def _place(self, owner: type, member: str | None) -> tuple[str | None, int | None]:
        # The statement is running: its line tells apart classes of one name.
        near = self.frame.f_lineno if owner.__module__ == self.cls.__module__ else None
        file, line = locate(owner.__module__, owner.__qualname__, member, near)
        if line is None:
            return relative_path(self.frame.f_code.co_filename), self.frame.f_lineno
        return file, line

    def reporter(self, member: str, owner: type) -> Callable[[str], None]:
        """Make what notes problems of one attribute.

        Args:
            member: The attribute.
            owner: The class that has it.
        """
        return lambda text: self.problem(member, text, member, owner)

    def owner_of(self, member: str) -> type | None:
        """Find the class that has an attribute: the new one or the nearest base; None for none."""
        return next((cls for cls in self.cls.__mro__ if member in vars(cls)), None)

    def faults(self, path: str, faults: Iterable[Fault], member: str | None = None) -> None:
        """Note what is wrong in a schema or in the declaration of one.

        Args:
            path: What declares it, from the class: `Input`, `read_file.input`.
            faults: What is wrong in it.
            member: The attribute of the class whose line is shown when no class owns the fault.
        """
        for fault in faults:
            dotted = ".".join([path, *map(str, fault.path)])
            text = fault.text
            if fault.line is not None:
                text = f"{text} (line {fault.line}, column {fault.column} of the text)"
            if fault.owner is None:
                # A key of a mapping that is written out has a line of its own.
                key = ".".join([member, *map(str, fault.path)]) if member else None
                self.problem(dotted, text, key)
            else:
                field = str(fault.path[-1]) if fault.path else None
                self.problem(dotted, text, field, fault.owner)

    def finish(self) -> None:
        """Raise what was found, in the order of the source.

        Raises:
            DefinitionError: There are problems.
        """
        if self.problems:
            raise DefinitionError(sorted(self.problems, key=lambda problem: problem.line or 0))


def option_attributes(cls: type, table: Table) -> dict[str, Any]:
    """Find the options that a class body gives as attributes.

    Args:
        cls: The class; its bases are not looked at.
        table: The options that there are.

    Returns:
        The values as written. A method is none: a toolkit may well have a tool named `title`.
    """
    return {k: v for k, v in vars(cls).items() if k in table and not is_method(v)}


def is_method(value: Any) -> bool:
    """Tell a method from data in a class body."""
    return hasattr(value, "__code__") or isinstance(value, staticmethod | classmethod)


class ComponentMeta(type):
    """The metaclass of `Tool`, `Toolkit` and their kin.

    A component has no options that Python knows of: keywords of the statement are read here and
    never reach `__init_subclass__`.
    """

    # Every root class gives these three; the last one reads the body of a new class.
    __mcp_kind__: str
    __mcp_table__: Table
    _read_class: Callable[[Declaration], None]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **keywords: Any
    ) -> "ComponentMeta":
        cls = super().__new__(mcs, name, bases, namespace)
        # `attrs.define` and `dataclass(slots=True)` make a class a second time, from its namespace
        # and without its keywords: what was read of it the first time is in there.
        is_copy = "__mcp_options__" in namespace and not keywords
        if any(isinstance(base, ComponentMeta) for base in bases) and not is_copy:
            declaration = Declaration(
                cls, cls.__mcp_table__, keywords, _statement_frame(sys._getframe())
            )
            type.__setattr__(cls, "__mcp_options__", declaration.own)
            cls._read_class(declaration)
            declaration.finish()
        return cls

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **_: Any
    ) -> None:
        super().__init__(name, bases, namespace)


def _statement_frame(frame: FrameType) -> FrameType:
    """Find the frame that runs the class statement: the first one outside of metaclasses."""
    while frame.f_code.co_name == "__new__" and frame.f_back is not None:
        frame = frame.f_back
    return frame


def class_of(target: Any) -> type:
    """Give the class of an instance; a class is its own."""
    return target if isinstance(target, type) else type(target)


def kind_of(target: Any) -> str | None:
    """Tell what a class or an instance is registered as.

    Args:
        target: Anything.

    Returns:
        `tools`, `resources` or `prompts`; None for what is no component.
    """
    cls = class_of(target)
    return cls.__mcp_kind__ if isinstance(cls, ComponentMeta) else None


def is_root(cls: type) -> bool:
    """Tell `Tool`, `Toolkit` and their kin from what subclasses them."""
    return isinstance(cls, ComponentMeta) and "__mcp_options__" not in vars(cls)


def is_abstract(cls: type) -> bool:
    """Tell whether a component class is a base only: a root of ours, or marked `abstract=True`."""
    options = vars(cls).get("__mcp_options__")
    return options is None or bool(options.get("abstract", False))


def missing_arguments(cls: type) -> list[str]:
    """Name the arguments without which a class cannot be instantiated.

    Args:
        cls: A component class.

    Returns:
        The required parameters of its `__init__`.
    """
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(cls).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]

"""The metaclass of components: a class statement is read once, and checked as a whole.

`ComponentMeta` makes the class. A `Declaration` then reads its options as its `ComponentKind` says,
and the method `_read_class` of its root class reads the rest of the body. Problems are collected:
one `DefinitionError` lists them all, each with its place in the source.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import FrameType, MappingProxyType
from typing import Any, Final, NamedTuple

import attrs

from ..._class_body import BodyMeta, replacements, statement_frame
from ..._errors import DefinitionError, Problem
from ..._source import calling_frame, locate, problem_at
from ..._util import relative_path
from ...schema import NO_TYPES, Fault, Schema, Types, type_arguments
from ...types import Wire
from ..handlers._bound import Bound
from ..handlers._handler import CallForm, ProblemReporter
from ._marks import is_marked, marked_options
from ._options import Table, read_options
from ._typos import find_typos

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
#: Options that belong to one class; a subclass does not take them over.
_NEVER_INHERITED: Final = ("name", "title", "abstract")


class ComponentKind(NamedTuple):
    """One kind of component: how its classes are read, registered and described.

    Attributes:
        feature: The list of a server that holds it: `tools`, `resources`, `prompts`.
        options: The options of its class statement, each with its reader.
        inputs: The names that declare the input of the method that answers, in a body or as
            options.
        members: The other names that an author may write in the body, each with a test of its
            value; a slip in one of them is a typo.
        noun: Its name in messages: `resource template`.
        key: The option that identifies one.
        example: A value of this option, for messages; empty if the name of the class gives it.
        methods: Its methods, each with the values that it is offered. The first one answers
            requests; a component must have it.
        parts: Reads the parts of the body that only this kind has. Takes the `ComponentReader`, and
            the method that answers: None for an abstract base, and after problems. Returns the
            fields of `Declared` beside the common ones; meaningless after problems.
        instead_of_mark: The advice on an `@mcp` in the body.
        overrides: The options that a registration may change, each with its reader.
        of_functions: The other options that a registration of a function may give.
        definition: The class of the entries of its list.
        bound: The class of registered ones.
    """

    feature: str
    options: Table
    inputs: tuple[str, ...] = ()
    members: Mapping[str, Callable[[Any], bool]] = NOTHING
    noun: str = ""
    key: str = "name"
    example: str = ""
    methods: Mapping[str, CallForm] = NOTHING
    parts: Callable[..., Mapping[str, object]] = lambda *_: {"fields": lambda _: {}}
    instead_of_mark: str = "take it off"
    overrides: Table = NOTHING
    of_functions: Table = NOTHING
    definition: type[Any] = Wire
    bound: type[Bound] = Bound


class Declaration:
    """A class statement that is being read.

    Attributes:
        cls: The new class.
        kind: Its kind.
        given: The names of the options that this statement gives, right or wrong.
        own: The valid ones.
        options: The valid ones, including options of its bases, nearest first.
        abstract: True if the class is a base for others, and no component itself.
        body: The namespace of the statement, as it was when the statement ended.
        known: The names that a body may declare something by.
        scope: The names that annotations written as text may use, beside the globals of the module.
        problems: The problems found so far.
    """

    def __init__(
        self,
        cls: type,
        kind: ComponentKind,
        keywords: Mapping[str, object],
        frame: FrameType,
        body: Mapping[str, object] = NOTHING,
    ) -> None:
        self.cls = cls
        self.kind = kind
        self.frame = frame
        self.body = body
        # Annotations as text may name classes of the enclosing function and of the body.
        self.scope = {**frame.f_locals, **vars(cls)}
        table = kind.options
        self.known = {*table, *kind.members, *kind.methods, *kind.inputs}
        self.problems = replacements(body, cls.__name__, self.known)
        attributes = self._attributes(table)
        for name in keywords.keys() & attributes.keys():
            self.problem(name, "given as a class keyword and as an attribute; keep one of them")
        self.given = frozenset({**attributes, **keywords})
        self.own, bad = read_options(table, {**attributes, **keywords})
        for name, text in bad:
            self.problem(name, text)
        self.options: dict[str, Any] = {}
        # From the last base to the nearest, so that the nearest wins; without `object`.
        for base in reversed(cls.__mro__[1:-1]):
            found = self._options_of(base, table)
            self.options |= {k: v for k, v in found.items() if k not in _NEVER_INHERITED}
        self.options |= self.own
        self.abstract = bool(self.own.get("abstract", False)) or unfinished(cls) is not None
        self._check_body()

    def _attributes(self, table: Table) -> dict[str, object]:
        """Give the options that the body has as attributes, without options that have no value."""
        found = _option_attributes(self.cls, table)
        for name, value in [*found.items()]:
            if hasattr(type(value), "__get__") and not is_method(value):
                del found[name]
                text = f"is a {type(value).__name__}, and the class itself has no value yet"
                self.problem(name, f"{text}; write {name} = …")
        return found

    def _check_body(self) -> None:
        """Refuse what would be ignored: a second kind, a method as an option, a slip of the pen."""
        cls, kind = self.cls, self.kind
        roots = [base.__name__ for base in cls.__mro__[1:] if is_root(base) or base is Schema]
        if len(roots) > 1:  # the second one would be ignored
            names = " and a ".join(roots)
            self.problem("", f"is a {names} in one; write a class for each")
        if "available" in kind.options and (owner := self._owner_of_function("available")):
            # A function in a body is a method, and is not read: everybody could use the component.
            text = (
                "a method is not read; put @staticmethod above it, or write it in the class"
                " statement: available=function"
            )
            self.problem("available", f"{text} (begin a name of your own with _)", owner=owner)
        for name, value in vars(cls).items():
            if kind.feature != "servers" and _is_nested(cls, name, value):
                noun = value.__mcp_kind__.noun
                text = f"is a {noun} in the body of another component, and in no list; move it out"
                self.problem(name, f"{text} and list it in a server, or begin its name with _")
        for name, meant in find_typos(cls, kind.options, kind.members, self.known):
            if meant not in self.given:
                text = f"is not an option; did you mean {meant!r}?"
                self.problem(name, f"{text} (begin a name of your own with _)")

    def _owner_of_function(self, member: str) -> type | None:
        """Find the class that has a function of this name which `@mcp` marks nowhere."""
        owner = self.owner_of(member)
        found = None if owner is None else vars(owner)[member]
        if isinstance(found, staticmethod) or not is_method(found):
            return None
        values = [vars(cls).get(member) for cls in self.cls.__mro__]
        return None if any(marked_options(value) is not None for value in values) else owner

    def _options_of(self, base: type, table: Table) -> dict[str, object]:
        """Give the options of a base; the options of a mixin are attributes, not checked before."""
        found: dict[str, object] | None = vars(base).get("__mcp_options__")
        if found is not None:
            return found
        attributes = _option_attributes(base, table)
        if not attributes:
            return {}
        good, bad = read_options(table, attributes)
        for name, text in bad:
            # A wrong option that the class itself gives again does no harm.
            if name not in self.given and name not in _NEVER_INHERITED:
                self.problem(name, text, owner=base)
        return good

    @cached_property
    def types(self) -> Mapping[type, Types]:
        """The types of the type variables of each generic base; its own may be any type."""
        if not hasattr(self.cls, "__orig_bases__"):
            return {}
        return type_arguments(self.cls)

    def types_of(self, owner: type | None) -> Types:
        """Give the types of the type variables in the body of a class of its MRO."""
        return NO_TYPES if owner is None else self.types.get(owner, NO_TYPES)

    def problem(
        self,
        path: str,
        text: str,
        member: str | None = None,
        owner: type | None = None,
        line: int | None = None,
    ) -> None:
        """Note a problem.

        Args:
            path: The place from the class on: `Input.limit`; "" for the class itself.
            text: The problem, and its solution.
            member: The attribute of the owner whose line is shown; the first of the path by
                default. Without such an attribute it is the line of the class.
            owner: The class whose source is searched; the new one by default.
            line: The line of the statement, if it is known.
        """
        owner = owner or self.cls
        # The statement is running: its line tells apart classes of one name.
        # Python writes the class before a name like `__secret`.
        mangled = f"_{self.cls.__name__.lstrip('_')}__"
        if path.startswith(mangled):
            path = path[len(mangled) - 2 :]
            member = path.partition(".")[0]
        where = f"{self.cls.__name__}.{path}" if path else self.cls.__name__
        running = relative_path(self.frame.f_code.co_filename)
        file: str | None = running
        if line is None:
            here = owner.__module__ == self.cls.__module__
            near = self.frame.f_lineno if here else None
            cell = self.frame.f_code.co_filename if here else None
            member = member or path.partition(".")[0] or None
            file, line = locate(owner.__module__, owner.__qualname__, member, near, cell)
        # No source, as in a shell: the line that runs is the best that there is.
        if line is None:
            file, line = running, self.frame.f_lineno
        self.problems.append(Problem(where, text, file, line))

    def take(self, problem: Problem, member: str) -> None:
        """Add a problem that was found elsewhere; a line that is known stays.

        Args:
            problem: The problem; `where` begins at the class.
            member: The attribute of the class whose line is shown, for one without.
        """
        if problem.line is None:
            self.problem(problem.where, problem.text, member)
        elif problem.where.partition("[")[0] != member:  # a function, which stands outside
            self.problems.append(problem)
        else:
            where = f"{self.cls.__name__}.{problem.where}"
            self.problems.append(Problem(where, problem.text, problem.file, problem.line))

    def reporter(self, member: str, owner: type) -> ProblemReporter:
        """Make a function that notes problems of one attribute of a class."""

        def report(text: str, parameter: str = "") -> None:
            path = f"{member}.{parameter}" if parameter else member
            self.problem(path, text, member, owner)

        return report

    def owner_of(self, member: str) -> type | None:
        """Find the class that has an attribute: the new one or the nearest base."""
        return next((cls for cls in self.cls.__mro__ if member in vars(cls)), None)

    def bodies(self) -> Iterator[dict[str, object]]:
        """Yield the bodies of the class and its bases, nearest first, options included."""
        for cls in self.cls.__mro__:
            yield {**vars(cls), **vars(cls).get("__mcp_options__", NOTHING)}

    def has_input(self) -> bool:
        """Tell whether the class or a base declares an input, so that a handler has it whole."""
        for body in self.bodies():
            found = [body[name] for name in self.kind.inputs if name in body]
            found = [value for value in found if not is_method(value)]
            if found:  # None takes away the input of a base
                return found[0] is not None
        return False

    def faults(self, path: str, faults: Iterable[Fault], member: str) -> None:
        """Note faults of a schema, or of the declaration of one.

        Args:
            path: The place of the declaration, from the class on: `Input`, `read_file.input`.
            faults: The faults.
            member: The attribute of the class whose line is shown when no class owns the fault.
        """
        for fault in faults:
            steps = list(map(str, fault.path))
            text = fault.text
            if fault.line is not None:
                text = f"{text} (line {fault.line}, column {fault.column} of the text)"
            # A key of a literal mapping has its own line.
            key = ".".join([member, *steps]) if fault.owner is None else "".join(steps[-1:])
            self.problem(".".join([path, *steps]), text, key, fault.owner)

    def finish(self) -> None:
        """Raise the problems, in the order of the source.

        Raises:
            DefinitionError: There are problems.
        """
        if self.problems:
            raise DefinitionError(sorted(self.problems, key=lambda problem: problem.line or 0))


def _is_nested(cls: type, name: str, value: Any) -> bool:
    """Tell whether a value of a class body is a nested component class."""
    defined = getattr(value, "__qualname__", None) == f"{cls.__qualname__}.{name}"
    shown = defined and isinstance(value, ComponentMeta) and not name.startswith("_")
    return shown and not is_abstract(value)


def _option_attributes(cls: type, table: Table) -> dict[str, object]:
    """Find the options that a class body gives as attributes; a method is never an option."""
    found = {k: v for k, v in vars(cls).items() if k in table and not is_method(v)}
    function = vars(cls).get("available")
    # The one option that is a function; Python would pass it the object, unless it is static.
    if "available" in table and isinstance(function, staticmethod) and not is_marked(function):
        found["available"] = function.__func__
    return found


def is_method(value: object) -> bool:
    """Tell a method from data in a class body."""
    return hasattr(value, "__code__") or isinstance(value, staticmethod | classmethod)


class ComponentMeta(BodyMeta):
    """The metaclass of `Tool`, `Toolkit` and their kin.

    The options of a component are unknown to Python: keywords of the statement are read here and
    never reach `__init_subclass__`.
    """

    # Every root class gives these two; the second reads the body of a new class.
    __mcp_kind__: ComponentKind
    _read_class: Callable[[Declaration], None]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **keywords: object
    ) -> Any:
        cls = super().__new__(mcs, name, bases, namespace)
        # `attrs.define` and `dataclass(slots=True)` make a class a second time, from its namespace
        # and without its keywords: the namespace has the options of the first time.
        is_copy = "__mcp_options__" in namespace and not keywords
        if any(isinstance(base, ComponentMeta) for base in bases) and not is_copy:
            frame = statement_frame()
            declaration = Declaration(cls, cls.__mcp_kind__, keywords, frame, namespace)
            type.__setattr__(cls, "__mcp_options__", declaration.own)
            cls._read_class(declaration)
            declaration.finish()
        return cls

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, object], /, **_: object
    ) -> None:
        # The keywords end here: `type.__init__` refuses them.
        super().__init__(name, bases, namespace)

    def __setattr__(cls, name: str, value: object) -> None:
        """Refuse a change of what the statement has read: nothing would come of it.

        Raises:
            DefinitionError: The name is an option, or declares something.
        """
        kind, own = cls.__mcp_kind__, vars(cls)
        # `dataclass` sets the default values of its fields again.
        changed = "__mcp_options__" in own and own.get(name, cls) is not value
        known = name in kind.options or name in kind.members or name in kind.inputs
        if changed and (known or is_marked(value)):
            text = (
                "is read when the class statement runs, and a change comes too late; write it in"
                f" the statement of {cls.__name__}"
            )
            raise DefinitionError([problem_at(f"{cls.__name__}.{name}", text, calling_frame())])
        super().__setattr__(name, value)


def class_of(target: object) -> type:
    """Give the class of an instance; a class is its own."""
    return target if isinstance(target, type) else type(target)


@attrs.frozen(eq=False)
class FunctionComponent:
    """A function that is one component.

    Attributes:
        kind: The kind.
        function: The function, or another callable.
        label: Its name, for messages.
        given: The options of its registration that no other registration can change.
        marks: The options of its `@mcp` lines, unread.
        problems: Everything that is wrong with it.
    """

    kind: ComponentKind
    function: object
    label: str
    given: Mapping[str, object]
    marks: Mapping[str, object] | None
    problems: tuple[Problem, ...]
    __mcp__: tuple[object, ...] = attrs.field(alias="mcp")


def kind_of(target: object) -> ComponentKind | None:
    """Give the kind of a class, of an instance or of a function; None for anything else."""
    if isinstance(target, FunctionComponent):
        return target.kind
    cls = class_of(target)
    return cls.__mcp_kind__ if isinstance(cls, ComponentMeta) else None


def is_root(cls: type) -> bool:
    """Tell `Tool`, `Toolkit` and their kin from their subclasses."""
    # The metaclass leaves the options on every class but the roots, whose statements it ignores.
    return isinstance(cls, ComponentMeta) and "__mcp_options__" not in vars(cls)


def is_abstract(cls: type) -> bool:
    """Tell whether a component class is a base only: a root, marked `abstract=True`, unfinished."""
    options = vars(cls).get("__mcp_options__")
    return options is None or bool(options.get("abstract", False)) or unfinished(cls) is not None


def unfinished(cls: type) -> str | None:
    """Say what a class lacks to be a component: a method that is abstract, or types; else None."""
    lacking = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
    if lacking:
        return f"has no {lacking}, which is abstract; write it, or leave it to a subclass"
    if variables := getattr(cls, "__parameters__", ()):
        types = ", ".join("…" for _ in variables)
        return f"is generic; make a subclass with types: class …({cls.__name__}[{types}])"
    return None


def missing_arguments(cls: type) -> list[str]:
    """Name the parameters of a component class that have no default."""
    # Most have no `__init__`; to inspect the signature of a class takes 50 µs.
    if not any({"__init__", "__new__"} & vars(base).keys() for base in cls.__mro__[:-1]):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(cls).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def takes(*counts: int) -> Callable[[Any], bool]:
    """Make the test for a method with so many parameters, `self` included."""
    return lambda value: (
        inspect.isfunction(value) and len(inspect.signature(value).parameters) in counts
    )

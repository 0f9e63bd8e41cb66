"""Functions as components: read once, as their kind says, like the method of a class."""

import functools
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Final

from ..._errors import Problem
from ..._source import calling_frame, locate, problem_at
from ..._util import relative_path
from ...schema import docstring_parameters, docstring_summary
from ..handlers._handler import Handler
from ..handlers._signature import code_of, read_handler
from ._component import ComponentReader, Declared
from ._marks import Mark, marked_options
from ._options import DECLARED_NAME, options_of, read_options
from ._statement import ComponentKind, Declaration, FunctionComponent, kind_of

# On a function: what was read of it, by the noun of its kind.
_READ: Final = "__mcp_components__"


def is_function(target: object) -> bool:
    """Tell whether a target is a function, or another callable, that can be a component."""
    if isinstance(target, type | Mark) or kind_of(target) is not None:
        return False
    owner = kind_of(getattr(target, "__self__", None))
    # A method of a component belongs to it; a method of a server may be a component.
    return callable(target) and (owner is None or owner.feature == "servers")


def function_component(kind: ComponentKind, function: object) -> FunctionComponent:
    """Read a function that is registered without options; what was read is kept on it.

    Args:
        kind: The kind that it is registered as.
        function: The function.
    """
    kept: dict[str, FunctionComponent] = getattr(function, "__dict__", {}).get(_READ, {})
    found = kept.get(kind.noun)
    # `functools.wraps` copies attributes to another function; a new `@mcp` line changes options.
    if found is None or found.function is not function or found.marks != marked_options(function):
        found = read_function(kind, function, {}, {}, None)
        if hasattr(function, "__code__") and not hasattr(function, "__func__"):
            setattr(function, _READ, {**kept, kind.noun: found})
    return found


def read_function(
    kind: ComponentKind,
    function: object,
    given: Mapping[str, object],
    overrides: Mapping[str, object],
    frame: FrameType | None,
) -> FunctionComponent:
    """Read a function as a component.

    Args:
        kind: The kind.
        function: A function, a coroutine function, a bound method, a `functools.partial`, or an
            object with `__call__`.
        given: The options that only the registration of a function has, checked.
        overrides: The other options of the registration, checked; None for a wrong option.
        frame: The line that registers it, which is shown for problems of its options.

    Returns:
        The component; its problems are noted in it.
    """
    statement = _Statement(kind, function, given, overrides, frame)
    declared = _FunctionReader(statement).read()
    return FunctionComponent(
        kind=kind,
        function=function,
        label=statement.label,
        given=given,
        marks=statement.marks,
        problems=tuple(statement.problems),
        mcp=declared,
    )


class _Statement(Declaration):
    """A function that is being read; see `read_function` for its arguments.

    Attributes:
        name: The name of the function; "" for an object, whose class has one.
        label: The name for messages.
        function: The function.
        inner: The function under a partial, or in an object.
        marks: The options of its `@mcp` lines, unread.
        overrides: The options of the registration.
    """

    def __init__(
        self,
        kind: ComponentKind,
        function: object,
        given: Mapping[str, object],
        overrides: Mapping[str, object],
        frame: FrameType | None,
    ) -> None:
        self.kind = kind
        self.function = function
        self.inner = code_of(function)
        self.overrides = overrides
        self.problems = []
        self.abstract = False
        self.scope = _names_around(self.inner)
        self._registered = frame
        self._options = given
        self._method = next(iter(kind.methods))
        named = isinstance(function, functools.partial) or hasattr(function, "__name__")
        self.name = self.inner.__name__ if named else ""
        self.label = self.name or type(function).__name__
        self.marks = marked_options(self.inner)
        marked, bad = read_options(options_of("mcp"), self.marks or {})
        for name, text in bad:
            self.problem(name, text)
        if self.marks is not None and kind.feature != "tools":
            self.problem("", f"stands under @mcp, which marks tools; take it off for a {kind.noun}")
        self.given = frozenset({*marked, *given})
        self.own = {**marked, **given}
        self.options = dict(self.own)

    def problem(
        self,
        path: str,
        text: str,
        member: str | None = None,
        owner: type | None = None,
        line: int | None = None,
    ) -> None:
        """Note a problem; see `Declaration.problem`."""
        # The parts of a class name its method first; here the function itself is this method.
        steps = path.split(".")
        steps = steps[1:] if steps[0] == self._method else steps
        where = ".".join([self.label, *filter(None, steps)])
        code = getattr(self.inner, "__code__", None)
        file, line = None, None
        if steps and steps[0] in self._options:
            pass  # an option of the registration stands in its line
        elif owner is not None:
            file, line = locate(owner.__module__, owner.__qualname__, member)
        elif code is not None:
            home, near = self.inner, code.co_firstlineno
            file, line = locate(
                home.__module__, home.__qualname__, steps[-1] if steps else None, near
            )
            # No source, as in a shell: the compiled code knows where it was written.
            file, line = (file, line) if line else (relative_path(code.co_filename), near)
        problem = Problem(where, text, file, line)
        if line is None and self._registered is not None:
            problem = problem_at(where, text, self._registered)
        self.problems.append(problem)

    def owner_of(self, member: str) -> None:
        """A function has no class."""

    def bodies(self) -> Iterator[dict[str, object]]:
        """Yield the options."""
        yield self.options


class _FunctionReader(ComponentReader):
    """Reads a function as its kind says."""

    in_class = False
    declaration: _Statement

    def __init__(self, declaration: _Statement) -> None:
        self.declaration = declaration
        self.problem = declaration.problem
        self.kind = declaration.kind
        self.options = declaration.options

    def read(self) -> tuple[Declared, ...]:
        """Read the function; one with problems declares nothing."""
        declaration, kind = self.declaration, self.kind
        summary = docstring_summary(self._docstring())
        if summary is not None:
            self.options.setdefault("description", summary)
        self._identify(kind.key)
        method = next(iter(kind.methods))
        handler = read_handler(
            "function",
            declaration.function,
            kind.methods[method],
            declaration.scope,
            lambda text, parameter="": self.problem(f"{method}.{parameter}", text),
            inline=self.options.get("inline", False),
            declared=declaration.has_input(),
        )
        self.handlers = {**dict.fromkeys(kind.methods), method: handler}
        # Read also after problems: one error lists all problems of the function.
        parts = kind.parts(self, handler)
        if declaration.problems or handler is None:
            return ()
        inner = declaration.inner
        source = f"{inner.__module__}.{inner.__qualname__}"
        fields = {"kind": kind, "options": self.options, "handler": handler, "source": source}
        return (Declared(**fields, **parts),)

    def _identify(self, key: str) -> None:
        """Name the component: by its options, else after the function."""
        declaration, kind = self.declaration, self.kind
        overrides = declaration.overrides
        if overrides.get(key) is not None:
            self.options[key] = overrides[key]
        if DECLARED_NAME.fullmatch(declaration.name):
            self.options.setdefault("name", declaration.name)
        if key in {**overrides, **self.options}:
            return
        if key == "name":
            text = f"gives the {kind.noun} no valid name; write {kind.noun}(…, name='…')"
        else:
            text = (
                f"a resource needs a URI; write resource({declaration.label}, uri='config://app')"
            )
        self.problem("", text)

    def _docstring(self) -> str | None:
        """Give the docstring of the function, or of the class of an object with `__call__`."""
        declaration = self.declaration
        written: str | None = declaration.inner.__doc__
        if declaration.inner is type(declaration.function).__call__:
            written = vars(type(declaration.function)).get("__doc__") or written
        return written

    def descriptions(self, _: Handler | None, /) -> dict[str, str]:
        """Read the descriptions of arguments in the docstring."""
        return docstring_parameters(self._docstring())

    def refuse_other_inputs(self, wanted: str, handler: Handler | None) -> None:
        """Do nothing: a function has no body that could declare an input."""


def _names_around(function: Any) -> dict[str, object]:
    """Give the names of the functions around a function, for annotations written as text."""
    names: dict[str, Any] = {}
    if "<locals>" in function.__qualname__:
        frame: FrameType | None = calling_frame()
        while frame is not None:
            if frame.f_globals is function.__globals__:
                names = {**frame.f_locals, **names}
            frame = frame.f_back
    return names

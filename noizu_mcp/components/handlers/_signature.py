"""The signatures of handlers: the parameters of methods and functions that answer requests.

A signature is read once, when the class is made or the function is registered. Parameters are told
apart by their names and annotations, never by position alone:

1. `ctx`, or a parameter annotated `Context`, takes the context, and `uri` of a resource its URI.
2. Where an input is declared, the first other parameter takes the whole input.
3. Otherwise a parameter named `args` takes the whole input.
4. Otherwise every other parameter is a property of the input.

The methods `complete` and `list` are read by position: they take what the protocol gives them.
"""

import functools
import inspect
import typing
from collections.abc import Iterable, Mapping
from enum import Enum
from inspect import Parameter
from types import MethodType
from typing import Any, Final

from ..._util import called
from ...schema import NO_TYPES, Types, with_types
from .._context import Context
from ._handler import POSITIONAL, CallForm, Handler, Home, Mode, ProblemReporter

_VARIADIC: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
#: Names of parameters that take the context where no annotation says another thing.
CONTEXT_NAMES: Final = ("ctx", "context")
#: Names of the object in methods, or of its class; without the underscores around.
_SELF: Final = ("", "self", "cls", "klass", "class", "this", "me", "kit", "tool", "s", "mcs")
#: Annotations of one value: never the whole input, never the context.
_VALUES: Final = (str, int, float, bytes, list, tuple, set, frozenset, Enum)
#: Annotations that say nothing about the arguments: the handler takes the plain dict.
_PLAIN: Final = (Parameter.empty, Any, object, dict, Mapping)
#: The annotation is text that does not evaluate.
UNRESOLVED: Final = Parameter("unresolved", Parameter.KEYWORD_ONLY)


def read_handler(
    attribute: str,
    found: object,
    row: CallForm,
    scope: Mapping[str, object],
    report: ProblemReporter,
    *,
    inline: bool = False,
    declared: bool = False,
    home: Home | None = None,
) -> Handler | None:
    """Read a method or a function that answers requests.

    Args:
        attribute: The attribute of the component that holds it.
        found: The value of that name in the class body; or the function.
        row: The values that it is offered.
        scope: Names for annotations written as text, in addition to names of the module.
        report: Takes the text of each problem.
        inline: Run a sync one where it is called, not in a thread.
        declared: True if an input is declared, which then is delivered in one object.
        home: The class; None for a function that stands in no class: it takes no `self`.

    Returns:
        The handler, also after problems: its schemas are checked, too. None without a method.
    """
    function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
    free = home is None
    if not callable(function) or not hasattr(code_of(function) if free else function, "__code__"):
        text = "is not written in Python, and has no types; write a function that calls it"
        report(text if free else f"must be a method, got {called(found)}")
        return None
    # Follows `__wrapped__`: a decorator that uses `functools.wraps` shows the method under it.
    inspected = inspect.signature(function)
    misfit = None if free else _misfit(attribute, found, inspected)
    if misfit is not None:
        report(misfit)
        return None
    bound = free or isinstance(found, staticmethod | MethodType)
    of_class = isinstance(found, classmethod)
    first = () if bound else ("cls",) if of_class else ("self",)
    types = NO_TYPES if home is None else home.types
    parameters = inspected.parameters.values()
    signature = Signature(function, parameters, scope, report, first=first, types=types)
    if not signature.take_given(home and home.cls, row):
        return None
    if row.least is None:
        passed, properties = _sort(signature, row, declared=declared)
    else:
        passed, properties = _check_positions(signature, row, row.least), []
    # A wrapper of `functools.wraps` hides that the method under it is a generator.
    inner = inspect.unwrap(code_of(function))
    is_stream = inspect.isasyncgenfunction(inner)
    yields = is_stream or inspect.isgeneratorfunction(inner)
    if yields and not row.may_yield:
        signature.report("yields, but an answer is one value; return a list")
    sync: Mode = "inline" if inline else "thread"
    return Handler(
        attribute=attribute,
        function=code_of(function),
        mode="async" if is_stream or is_async(function) else sync,
        offers=row.offers,
        passed=tuple(passed),
        properties=tuple(properties),
        returns=signature.resolve(inspected.return_annotation),
        yields=yields,
    )


class Signature:
    """The parameters of a handler, their annotations evaluated.

    Args:
        function: The function.
        parameters: Its parameters.
        scope: Names for annotations written as text, in addition to names of the module.
        report: Takes the text of each problem.
        first: The parameters in front that examples show: `self`.
        types: The types of type variables.

    Attributes:
        parameters: The parameters. An annotation that does not evaluate stays text.
    """

    def __init__(
        self,
        function: object,
        parameters: Iterable[Parameter],
        scope: Mapping[str, object],
        report: ProblemReporter,
        *,
        first: tuple[str, ...] = ("self",),
        types: Types = NO_TYPES,
    ) -> None:
        self.function = function
        self.scope = scope
        self._types = types
        self._report = report
        self._first = first
        self.parameters: list[Parameter] = []
        for p in parameters:
            annotation = self.resolve(p.annotation)
            same = annotation is p.annotation or annotation is UNRESOLVED
            self.parameters.append(p if same else p.replace(annotation=annotation))

    def take_given(self, owner: type | None, row: CallForm) -> bool:
        """Remove the parameters whose values a call does not pass; False if `self` is missing.

        Args:
            owner: The class that has the method; None for a function.
            row: The values that it is offered, for messages.
        """
        if self._first:
            if not self.parameters or self.parameters[0].kind not in POSITIONAL:
                self.report(f"takes no {self._first[0]}; write {self.example(*row.offers)}")
                return False
            first = self.parameters.pop(0)
            if not takes_object(first, owner):
                others = map(written, (first, *self.parameters))
                text = f"takes no {self._first[0]}, so that {first.name} would be the object"
                self.report(f"{text}; write {self.example(*others)}")
                return False
        if isinstance(self.function, functools.partial):
            given = self.function.keywords
            self.parameters = [p for p in self.parameters if p.name not in given]
        return True

    @property
    def positional(self) -> list[Parameter]:
        """The parameters that take a value by position."""
        return [p for p in self.parameters if p.kind in POSITIONAL]

    def report(self, text: str, parameter: str = "") -> None:
        """Report a problem."""
        self._report(text, parameter)

    def resolve(self, annotation: object) -> Any:
        """Evaluate an annotation that is text; UNRESOLVED if it does not evaluate."""
        if not isinstance(annotation, str):
            return with_types(annotation, self._types) if self._types else annotation
        names = getattr(inspect.unwrap(code_of(self.function)), "__globals__", {})
        try:
            # As `get_type_hints` does, but one by one: that fails for all if one name is missing.
            return self.resolve(eval(annotation, names, dict(self.scope)))
        except Exception:  # an annotation is code of the author, and may raise anything
            return UNRESOLVED

    def example(self, *parameters: str) -> str:
        """Write the first line of the handler with other parameters, for a message."""
        name = getattr(code_of(self.function), "__name__", "…")
        name = name if name.isidentifier() else "…"
        return f"def {name}({', '.join((*self._first, *parameters))})"


def _misfit(attribute: str, found: object, signature: inspect.Signature) -> str | None:
    """Return why a value in a class body cannot be read as a method; None if it can."""
    function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
    name = getattr(code_of(function), "__name__", attribute)
    if isinstance(found, staticmethod) and next(iter(signature.parameters), "") in ("self", "cls"):
        return "takes an object, which a static method is not given; leave out one of the two"
    if name != attribute and any(p.kind in _VARIADIC for p in signature.parameters.values()):
        return (
            f"is {called(code_of(function))}, which hides its parameters; if a decorator makes it,"
            " put @functools.wraps(…) above it there"
        )
    return None


def _sort(
    signature: Signature, row: CallForm, *, declared: bool
) -> tuple[list[tuple[Parameter, str]], list[Parameter]]:
    """Separate the parameters that take an offered value from the properties of the input."""
    has_input, example = "args" in row.offers, signature.example(*row.offers)
    taken: dict[str, str] = {}
    others: list[Parameter] = []
    for p in signature.parameters:
        if p.kind in _VARIADIC:
            # Nothing tells how many values `*args` wants, or whether `**kwargs` are arguments.
            cure = f"name each parameter, or write {example}" if has_input else f"write {example}"
            signature.report(f"takes {str(p).partition(':')[0]}; {cure}")
        elif p.name == "ctx" or mentions(p.annotation, (Context,)):
            _check_context(signature, p, twice="ctx" in taken.values())
            taken[p.name] = "ctx"
        elif p.name == "uri" and "uri" in row.offers:
            taken[p.name] = "uri"
        else:
            others.append(p)
    properties = others
    named = [p for p in others if p.name == "args"]
    whole = (others if declared else named)[:1]
    if not has_input:
        for p in others:
            text = f"has no value to take; write {example}, or give the URI a variable {{{p.name}}}"
            signature.report(text, p.name)
    elif whole:
        _check_whole(signature, whole[0], others, declared=declared)
        taken[whole[0].name] = "args"
        properties = []
    else:
        properties = [_check_property(signature, p, alone=len(others) == 1) for p in others]
    # In the order of the signature: they may be passed by position.
    return [(p, taken[p.name]) for p in signature.parameters if p.name in taken], properties


def _check_context(signature: Signature, p: Parameter, *, twice: bool) -> None:
    """Check a parameter that takes the context."""
    if twice:
        signature.report("takes the context a second time; leave it out", p.name)
    elif is_value(p.annotation):
        text = "write ctx: Context, or give the argument another name"
        signature.report(f"takes the context, and is annotated as a value; {text}", p.name)


def _check_whole(
    signature: Signature, whole: Parameter, others: list[Parameter], *, declared: bool
) -> None:
    """Check the parameter that takes the whole input, and refuse others beside it."""
    if declared and is_value(whole.annotation):
        text = "takes the whole input in one object, and is annotated as a value; leave out the"
        signature.report(
            f"{text} annotation, or the declaration of the input, so that it is a property of it",
            whole.name,
        )
    for p in others:
        if p is whole:
            continue
        if declared:
            cure = f"leave it out: it is {whole.name}.{p.name} if the input declares it"
        else:
            cure = "leave it out, or rename args: then each parameter is one property of the input"
        signature.report(f"stands beside {whole.name}, which takes the whole input; {cure}", p.name)


def _check_property(signature: Signature, p: Parameter, *, alone: bool) -> Parameter:
    """Check a parameter that is one property of the input; a wrong one may then be anything."""
    if p.name in ("self", "cls") and p.annotation is p.empty:
        text = "a method is a component with its object only; register object.method, or a Toolkit"
    elif p.name.strip("_") in CONTEXT_NAMES and p.annotation is p.empty:
        text = "has no annotation; for the context of the call write ctx"
    elif p.name.startswith("_"):
        text = "begins with _, and an argument does not; leave the parameter out, or rename it"
    elif p.annotation is p.empty:
        whole = ", or call it args to take the whole input" if alone else ""
        text = f"has no annotation; write {annotated(p)}{whole}"
    elif p.kind is p.POSITIONAL_ONLY:
        text = "is positional-only, and arguments are passed by name; take the / out"
    else:
        return p
    signature.report(text, p.name)
    return p.replace(annotation=Any, default=p.empty)


def _check_positions(
    signature: Signature, row: CallForm, least: int
) -> list[tuple[Parameter, str]]:
    """Check parameters against the values that are passed by position."""
    example = signature.example(*row.offers)
    for p in signature.parameters:
        if p.kind in _VARIADIC:
            signature.report(f"takes {str(p).partition(':')[0]}; write {example}")
        # One with a default may be there for other callers of the method.
        elif p.kind is p.KEYWORD_ONLY and p.default is p.empty:
            text = f"takes the keyword-only {p.name!r}, which nothing passes; give it a default"
            signature.report(text)
    taken, last = signature.positional, row.offers[-1]
    passed = list(zip(taken, row.offers, strict=False))
    if not least <= len(taken) <= len(row.offers):
        names = ", ".join(p.name for p in taken)
        text = f"takes ({names}) but is passed ({', '.join(row.offers)}); write {example}"
        signature.report(text)
        return passed
    for p, offered in passed:
        if offered != last and is_context(p):
            signature.report(f"{p.name!r} stands in the place of {offered}; write {example}")
            return passed
        # A parameter that is not used may have any name that says so: `_`, `_ctx`.
        if offered == last and not is_context(p) and not p.name.startswith("_"):
            cure = f"write {example}" if p.default is p.empty else "make it keyword-only"
            signature.report(f"{p.name!r} would be passed the context; {cure}")
    return passed


def code_of(function: object) -> Any:
    """Return the function under a partial or a bound method, or in an instance with `__call__`."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    call = type(function).__call__
    return call if hasattr(call, "__code__") and not hasattr(function, "__code__") else function


def is_async(function: object) -> bool:
    """Tell whether a call is to be awaited; a decorator that passes a coroutine on is async too."""
    inner = code_of(function)
    return any(map(inspect.iscoroutinefunction, (function, inner, inspect.unwrap(inner))))


def takes_object(p: Parameter, owner: type | None) -> bool:
    """Tell whether the first parameter of a method can be meant for the object, or its class."""
    if p.default is not p.empty or is_context(p):
        return False
    if p.annotation is p.empty or p.name in _SELF:
        return p.name.strip("_") in _SELF
    made = typing.get_origin(p.annotation) or p.annotation
    if not isinstance(made, type) or not isinstance(owner, type):
        return True
    # `type[Self]` of a classmethod; a base, a mixin or a protocol; or this class, made again.
    return made is type or issubclass(owner, made) or made.__name__ == owner.__name__


def annotated(p: Parameter) -> str:
    """Write a parameter with a type, for a message: the type of its default, or any."""
    if p.default is p.empty or p.default is None:
        return f"{p.name}: str" + (" | None = None" if p.default is None else "")
    cls = type(p.default)
    is_plain = cls in (str, int, float, bool)
    return f"{p.name}: {cls.__name__} = {p.default!r}" if is_plain else f"{p.name}: <type> = …"


def written(p: Parameter) -> str:
    """Write a parameter of a method without `self`, for a message."""
    if p.name in ("args", "uri", *CONTEXT_NAMES):
        return p.name
    if p.annotation is p.empty:
        return annotated(p)
    plain = isinstance(p.annotation, type) and typing.get_origin(p.annotation) is None
    return f"{p.name}: {p.annotation.__name__ if plain else p.annotation}"


def is_value(annotation: object) -> bool:
    """Tell whether an annotation describes one value, not an object."""
    made = typing.get_origin(annotation) or annotation
    return isinstance(made, type) and issubclass(made, _VALUES)


def declares_input(p: Parameter) -> bool:
    """Tell whether the annotation of a parameter that takes the whole input declares the input."""
    # `dict[str, Any]` and the like: the handler wants the arguments as they came.
    return p.annotation not in _PLAIN and typing.get_origin(p.annotation) not in _PLAIN


def is_context(p: Parameter) -> bool:
    """Tell whether a parameter takes the context: by its annotation; without one, by its name."""
    # The name decides only where the annotation says nothing: `ctx: str` is an argument.
    if isinstance(p.annotation, str) or p.annotation in (Parameter.empty, Any, object):
        return p.name in CONTEXT_NAMES
    return mentions(p.annotation, (Context,))


def mentions(annotation: object, classes: tuple[type, ...]) -> bool:
    """Tell whether a class stands in an annotation: alone, in a union, in a list.

    Args:
        annotation: Any annotation.
        classes: The classes; subclasses count.

    Returns:
        True if one of them is there.
    """
    if isinstance(annotation, type):
        return issubclass(annotation, classes)
    origin = typing.get_origin(annotation)
    if isinstance(origin, type) and issubclass(origin, classes):
        return True
    return any(mentions(argument, classes) for argument in typing.get_args(annotation))

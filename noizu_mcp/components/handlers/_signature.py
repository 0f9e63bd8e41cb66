"""Methods and functions that answer requests: their parameters, and how they are called.

A signature is read once, when the class is made or the function is registered. A request calls one
function with all values that the handler is offered; this function passes on those that the handler
takes. Parameters are told apart by their names and annotations, never by position alone:

1. `ctx`, or a parameter annotated `Context`, takes the context, and `uri` of a resource its URI.
2. Where an input is declared, the first other parameter takes the whole input.
3. Otherwise a parameter named `args` takes the whole input.
4. Otherwise every other parameter is a property of the input.

The methods `complete` and `list` are read by position: they take what the protocol gives them.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter
from types import MethodType
from typing import Any, Final, Literal, NamedTuple, Protocol

from ..._util import called
from ..._value import Frozen
from ...schema import NO_TYPES, Types, with_types
from .._context import Context
from ._parameters import (
    CONTEXT_NAMES,
    annotated,
    is_context,
    is_value,
    mentions,
    takes_object,
    written,
)

Mode = Literal["async", "thread", "inline"]

_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


#: The annotation is text that does not evaluate.
UNRESOLVED: Final = Parameter("unresolved", Parameter.KEYWORD_ONLY)


class Report(Protocol):
    """Takes the text of a problem, and the parameter that it is about."""

    def __call__(self, text: str, parameter: str = "") -> None: ...


class Row(NamedTuple):
    """The values that a handler is offered after `self`.

    A handler may leave off any of them, and is not passed these.

    Attributes:
        offers: A name for each value, in order; the last one is the context.
        least: The number of values that a method must take which is read by position; None for a
            handler whose parameters are told by their names.
        may_yield: True if the method may be a generator.
    """

    offers: tuple[str, ...]
    least: int | None = None
    may_yield: bool = False


class Home(NamedTuple):
    """The class that a method is read for.

    Attributes:
        cls: The class, which may inherit the method.
        types: The types of the type variables in the body that has the method.
    """

    cls: type
    types: Types


class Handler(Frozen):
    """A method or a function that answers requests.

    Attributes:
        attribute: The attribute of the component that holds it.
        function: The function itself, without the partial or the object around it.
        mode: `async`: awaited; `thread`: may block, runs in a worker thread; `inline`: short, runs
            where it is called.
        offers: The names of the values that it may take.
        passed: The parameters that take one of these values, each with the name of the value.
        properties: The parameters that are properties of the input.
        returns: The annotation of the result; `Parameter.empty` if there is none.
        yields: True for a generator; its items become a list.
    """

    attribute: str
    function: Any
    mode: Mode
    offers: tuple[str, ...]
    passed: tuple[tuple[Parameter, str], ...]
    properties: tuple[Parameter, ...]
    returns: Any
    yields: bool

    @property
    def taken(self) -> set[str]:
        """The names of the values that it takes, without properties."""
        return {name for _, name in self.passed}

    def taking(self, value: str) -> Parameter | None:
        """Find the parameter that takes a value: `args` for the whole input; None without one."""
        return next((p for p, name in self.passed if name == value), None)

    @property
    def takes_context(self) -> bool:
        """True if the handler takes the context."""
        return self.offers[-1] in self.taken

    def bind(self, instance: object) -> Callable[..., Any]:
        """Make the function that a request calls.

        Args:
            instance: The component that has the handler.

        Returns:
            A function of all values of the row.
        """
        # Looked up once, not with every call.
        method: Callable[..., Any] = getattr(instance, self.attribute)
        if self.yields:
            takes = len(self.passed)
            if self.mode == "async":

                async def collect(*values: Any) -> list[Any]:
                    return [item async for item in method(*values[:takes])]

                return collect
            return lambda *values: list(method(*values[:takes]))
        given = [
            name if p.kind in _POSITIONAL and not self.properties else f"{p.name}={name}"
            for p, name in self.passed
        ]
        if given == [*self.offers]:  # `(args, ctx)`: nothing to leave out
            return method
        if self.properties:
            given.append("**args")
        return _caller(", ".join(self.offers), ", ".join(given))(method)


@functools.cache
def _caller(offers: str, given: str) -> Callable[[Any], Callable[..., Any]]:
    """Make the function that makes a call of some shape: `lambda args, ctx: method(ctx, args)`."""
    # Written as code: a call then costs no more than one that the author would write. All names
    # are those of parameters, so that they are identifiers.
    made: Callable[[Any], Callable[..., Any]] = eval(
        f"lambda method: lambda {offers}: method({given})", {}
    )
    return made


def read_handler(
    attribute: str,
    found: Any,
    row: Row,
    scope: Mapping[str, Any],
    report: Report,
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
        scope: Names for annotations written as text, beside those of the module.
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
        scope: Names for annotations written as text, beside those of the module.
        report: Takes the text of each problem.
        first: The parameters in front that examples show: `self`.
        types: The types of type variables.

    Attributes:
        parameters: The parameters. An annotation that does not evaluate stays text.
    """

    def __init__(
        self,
        function: Any,
        parameters: Iterable[Parameter],
        scope: Mapping[str, Any],
        report: Report,
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

    def take_given(self, owner: type | None, row: Row) -> bool:
        """Take out the parameters whose values a call does not pass; False if `self` is missing.

        Args:
            owner: The class that has the method; None for a function.
            row: The values that it is offered, for messages.
        """
        if self._first:
            if not self.parameters or self.parameters[0].kind not in _POSITIONAL:
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
        return [p for p in self.parameters if p.kind in _POSITIONAL]

    def report(self, text: str, parameter: str = "") -> None:
        """Report a problem."""
        self._report(text, parameter)

    def resolve(self, annotation: Any) -> Any:
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


def _misfit(attribute: str, found: Any, signature: inspect.Signature) -> str | None:
    """Say why a value in a class body cannot be read as a method; None if it can."""
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
    signature: Signature, row: Row, *, declared: bool
) -> tuple[list[tuple[Parameter, str]], list[Parameter]]:
    """Tell the parameters that take a value of the row from the properties of the input."""
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


def _check_positions(signature: Signature, row: Row, least: int) -> list[tuple[Parameter, str]]:
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


def code_of(function: Any) -> Any:
    """Give the function under a partial or a bound method, or in an instance with `__call__`."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    call = type(function).__call__
    return call if hasattr(call, "__code__") and not hasattr(function, "__code__") else function


def is_async(function: Any) -> bool:
    """Tell whether a call is to be awaited; a decorator that passes a coroutine on is async too."""
    inner = code_of(function)
    return any(map(inspect.iscoroutinefunction, (function, inner, inspect.unwrap(inner))))


def refuse_coroutine(value: Any, name: str) -> None:
    """Refuse a coroutine that nobody awaits.

    Args:
        value: The value that a sync function returned.
        name: The function that should be async.

    Raises:
        TypeError: The value is a coroutine.
    """
    if inspect.iscoroutine(value):
        value.close()  # else Python warns, at some later time, in some other place
        raise TypeError(f"a coroutine was returned; make {name} async, or await it")

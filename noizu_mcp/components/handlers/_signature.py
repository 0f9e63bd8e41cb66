"""Methods that answer requests: the values they take, whether they may block, how they are called.

A signature is read once, when the class is made. A request calls one function with all values that
the method is offered; this function passes on those that the method takes.
"""

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter
from typing import Any, Final, Literal, NamedTuple

from ..._util import called
from ..._value import Frozen
from .._context import Context

Mode = Literal["async", "thread", "inline"]
Report = Callable[[str], None]

_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_CONTEXT_NAMES: Final = ("ctx", "context")

#: The annotation is text that does not evaluate.
UNRESOLVED: Final = Parameter("unresolved", Parameter.KEYWORD_ONLY)


class Row(NamedTuple):
    """The values that a method is offered after `self`.

    A method may leave off values at the end of the row, and is not passed these.

    Attributes:
        offers: A name for each value, in order; the last one is the context.
        least: The number of values that the method must take.
        may_yield: True if the method may be a generator.
        spreads: True if keyword-only parameters may be the input, each one property of it.
        advice: The first half of the advice on a parameter too many, for messages.
    """

    offers: tuple[str, ...]
    least: int = 0
    may_yield: bool = False
    spreads: bool = False
    advice: str = ""


class Handler(Frozen):
    """A method that answers requests.

    Attributes:
        attribute: Its name in the class.
        function: The function itself.
        mode: `async`: awaited; `thread`: may block, runs in a worker thread; `inline`: short, runs
            where it is called.
        offers: The names of the values that it may take.
        positional: The parameters that take them.
        keywords: The keyword-only parameters, if they are the input.
        returns: The annotation of the result; `Parameter.empty` if there is none.
        yields: True for a generator; its items become a list.
    """

    attribute: str
    function: Any
    mode: Mode
    offers: tuple[str, ...]
    positional: tuple[Parameter, ...]
    keywords: tuple[Parameter, ...]
    returns: Any
    yields: bool

    @property
    def takes_context(self) -> bool:
        """True if the method takes the context."""
        return len(self.positional) == (1 if self.keywords else len(self.offers))

    def bind(self, instance: object) -> Callable[..., Any]:
        """Make the function that a request calls.

        Args:
            instance: The component that has the method.

        Returns:
            A function of all values of the row.
        """
        method: Callable[..., Any] = getattr(instance, self.attribute)
        takes = len(self.positional)
        if self.keywords:
            if takes:
                return lambda args, ctx: method(ctx, **args)
            return lambda args, _ctx: method(**args)
        if self.yields:
            if self.mode == "async":

                async def collect(*values: Any) -> list[Any]:
                    return [item async for item in method(*values[:takes])]

                return collect
            return lambda *values: list(method(*values[:takes]))
        if takes == 1:  # most tools; without the slice
            return method if len(self.offers) == 1 else lambda first, *_: method(first)
        return method if takes == len(self.offers) else lambda *values: method(*values[:takes])


def read_handler(
    attribute: str,
    found: Any,
    row: Row,
    scope: Mapping[str, Any],
    report: Report,
    *,
    inline: bool = False,
) -> Handler | None:
    """Read a method that answers requests.

    Args:
        attribute: Its name in the class.
        found: The value of that name in the class body.
        row: The values that it is offered.
        scope: Names for annotations written as text, beside those of the module.
        report: Takes the text of each problem.
        inline: Run a sync method where it is called, not in a thread.

    Returns:
        The handler, or None after problems.
    """
    function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
    if not callable(function) or not hasattr(function, "__code__"):
        report(f"must be a method, got {called(found)}")
        return None
    inspected = inspect.signature(function)
    parameters = list(inspected.parameters.values())
    example = example_of(function, ", ".join(row.offers))
    if not isinstance(found, staticmethod):
        if not parameters or parameters[0].kind not in _POSITIONAL:
            report(f"takes no self; write {example}")
            return None
        del parameters[0]
    signature = Signature(function, parameters, scope, report)
    for p in signature.variadic:
        signature.report(f"takes {str(p).partition(':')[0]}; write {example}")
    keywords = tuple(signature.keywords) if row.spreads else ()
    if keywords:
        _check_spread(signature)
    else:
        _check_row(signature, row, example)
    inner = inspect.unwrap(function)
    is_stream = inspect.isasyncgenfunction(inner)
    yields = is_stream or inspect.isgeneratorfunction(inner)
    if yields and not row.may_yield:
        signature.report("yields, but an answer is one value; return a list")
    if signature.failed:
        return None
    sync: Mode = "inline" if inline else "thread"
    return Handler(
        attribute=attribute,
        function=function,
        mode="async" if is_stream or is_async(function) else sync,
        offers=row.offers,
        positional=tuple(signature.positional),
        keywords=keywords,
        returns=signature.resolve(inspected.return_annotation),
        yields=yields,
    )


class Signature:
    """The parameters of a method, sorted by kind, their annotations evaluated.

    Args:
        function: The function.
        parameters: Its parameters, without `self`.
        scope: Names for annotations written as text, beside those of the module.
        report: Takes the text of each problem.

    Attributes:
        positional: The parameters that take a value by position.
        keywords: The keyword-only parameters.
        variadic: `*args` and `**kwargs`.
        failed: True once a problem was reported.
    """

    def __init__(
        self,
        function: Any,
        parameters: list[Parameter],
        scope: Mapping[str, Any],
        report: Report,
    ) -> None:
        self.function = function
        self.scope = scope
        self._report = report
        self.failed = False
        self.positional: list[Parameter] = []
        self.keywords: list[Parameter] = []
        self.variadic = [p for p in parameters if p.kind in _VARIADIC]
        for p in parameters:
            annotation = self.resolve(p.annotation)
            resolved = p if annotation is p.annotation else p.replace(annotation=annotation)
            if p.kind in _POSITIONAL:
                self.positional.append(resolved)
            elif p.kind is Parameter.KEYWORD_ONLY:
                # Text stays text for a property of the input: its reader says what is missing.
                self.keywords.append(p if annotation is UNRESOLVED else resolved)

    def report(self, text: str) -> None:
        """Report a problem."""
        self.failed = True
        self._report(text)

    def resolve(self, annotation: Any) -> Any:
        """Evaluate an annotation that is text; UNRESOLVED if it does not evaluate."""
        if not isinstance(annotation, str):
            return annotation
        names = getattr(inspect.unwrap(self.function), "__globals__", {})
        try:
            # As `get_type_hints` does, but one by one.
            return eval(annotation, names, dict(self.scope))
        except Exception:
            return UNRESOLVED


def _check_row(signature: Signature, row: Row, example: str) -> None:
    """Check positional parameters against the values that are passed."""
    for p in signature.keywords:
        if p.default is Parameter.empty:
            field = "declare it as a field of the input, or " if "args" in row.offers else ""
            signature.report(
                f"takes the keyword-only {p.name!r}, which nothing passes; {field}give it a default"
            )
    taken, last = signature.positional, row.offers[-1]
    advice = f"write {spread_example(signature.function, taken)}" if row.spreads else None
    advice = advice or f"{row.advice}write {example}"
    if not row.least <= len(taken) <= len(row.offers):
        names = ", ".join(p.name for p in taken)
        signature.report(f"takes ({names}) but is passed ({', '.join(row.offers)}); {advice}")
        return
    for p, offered in zip(taken, row.offers, strict=False):
        if offered != last and is_context(p):
            signature.report(f"{p.name!r} stands in the place of {offered}; write {example}")
            return
        # A parameter that is not used may have any name that says so: `_`, `_ctx`.
        if offered == last and not is_context(p) and not p.name.startswith("_"):
            optional = p.default is not p.empty and not (row.advice or row.spreads)
            cure = "make it keyword-only" if optional else advice
            signature.report(f"{p.name!r} would be passed the context; {cure}")


def _check_spread(signature: Signature) -> None:
    """Check `(*, a, b)` and `(ctx, *, a, b)`."""
    example = example_of(signature.function, "ctx, *, …")
    for p in signature.keywords:
        if is_context(p):
            signature.report(f"{p.name!r} must not be keyword-only; write {example}")
    others = [repr(p.name) for p in signature.positional if not is_context(p)]
    if others:
        signature.report(
            f"keyword-only parameters are the input, so nothing is passed for {', '.join(others)};"
            " put it behind the *, or declare an input"
        )
    elif len(signature.positional) > 1:
        signature.report(f"takes the context twice; write {example}")


def example_of(function: Any, parameters: str) -> str:
    """Write the first line of a method with other parameters, for a message."""
    return f"def {function.__name__}({', '.join(filter(None, ('self', parameters)))})"


def spread_example(function: Any, parameters: Iterable[Parameter]) -> str:
    """Write a method with its parameters behind a `*`, as properties of the input have them.

    Args:
        function: The function.
        parameters: Its parameters, without `self`; one that takes the context stays in front.
    """
    row = ["*"]
    for p in parameters:
        if is_context(p):
            row.insert(0, "ctx")
        elif p.annotation is not Parameter.empty:
            row.append(str(p.replace(kind=Parameter.KEYWORD_ONLY)))
        else:
            default = "" if p.default is Parameter.empty else f" = {p.default!r}"
            row.append(f"{p.name}: …{default}")
    return example_of(function, ", ".join(row))


def is_async(function: Any) -> bool:
    """Tell whether a call is to be awaited; a decorator that passes a coroutine on is async too."""
    return any(map(inspect.iscoroutinefunction, (function, inspect.unwrap(function))))


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


def is_context(p: Parameter) -> bool:
    """Tell a parameter that takes the context: by its annotation; without one, by its name."""
    if p.annotation in (Parameter.empty, UNRESOLVED, Any, object):
        return p.name in _CONTEXT_NAMES
    return mentions(p.annotation, (Context,))


def mentions(annotation: Any, classes: tuple[type, ...]) -> bool:
    """Tell whether a class stands in an annotation: alone, in a union, in a list.

    Args:
        annotation: Any annotation.
        classes: The classes; subclasses count.

    Returns:
        True if one of them is there.
    """
    if isinstance(annotation, type):
        return issubclass(annotation, classes)
    return any(mentions(argument, classes) for argument in typing.get_args(annotation))

"""The method behind a tool: what it takes, whether it may block, and how it is called.

The signature is read once, when the class is made. What is left for a call is one function of
`(args, ctx)` that passes on what the method takes.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, Final, Literal

from ._context import Context
from ._frozen import Frozen

Mode = Literal["async", "thread", "inline"]
Report = Callable[[str], None]
#: What a handler is passed. `keywords` are the arguments, spread.
Passes = Literal["nothing", "args", "args, ctx", "keywords", "ctx, keywords"]

POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_CONTEXT_NAMES: Final = ("ctx", "context")

#: The annotation is text that does not evaluate.
UNRESOLVED: Final = Parameter("unresolved", Parameter.KEYWORD_ONLY)


class Handler(Frozen):
    """A method that answers calls.

    Attributes:
        attribute: Its name in the class.
        passes: What it takes.
        mode: `async`: awaited; `thread`: may block, runs in a worker thread; `inline`: short, runs
            where it is called.
        args: The annotation of the arguments; `Parameter.empty` if there is none.
        returns: The annotation of what it returns; `Parameter.empty` if there is none.
        keywords: The keyword-only parameters, if they are the input.
        function: The function itself.
    """

    attribute: str
    passes: Passes
    mode: Mode
    args: Any
    returns: Any
    keywords: tuple[Parameter, ...]
    function: Any

    @property
    def takes_context(self) -> bool:
        """Whether it wants the context."""
        return "ctx" in self.passes

    def bind(self, instance: object) -> Callable[[Any, Any], Any]:
        """Make the function that a call uses.

        Args:
            instance: The tool or toolkit.

        Returns:
            A function of the arguments and the context; it passes on what the method takes.
        """
        method: Callable[..., Any] = getattr(instance, self.attribute)
        match self.passes:
            case "nothing":
                return lambda _args, _ctx: method()
            case "args":
                return lambda args, _ctx: method(args)
            case "keywords":
                return lambda args, _ctx: method(**args)
            case "ctx, keywords":
                return lambda args, ctx: method(ctx, **args)
        return method


def read_handler(
    attribute: str,
    found: Any,
    scope: Mapping[str, Any],
    report: Report,
    *,
    inline: bool = False,
    keyword_form: bool = False,
) -> Handler | None:
    """Read the method that answers calls.

    Args:
        attribute: Its name in the class.
        found: What stands in the class body under this name.
        scope: Names for annotations written as text, beside the module's own.
        report: Takes the text of each problem.
        inline: Whether a sync method runs where it is called.
        keyword_form: Whether keyword-only parameters may be the input.

    Returns:
        The handler, or None when there were problems.
    """
    function = read_function(found, report)
    if function is None:
        return None
    parameters = list(inspect.signature(function).parameters.values())
    if not isinstance(found, staticmethod):
        if not parameters or parameters[0].kind not in POSITIONAL:
            report(f"takes no self; write {_example(function, '')}")
            return None
        del parameters[0]
    reader = Signature(function, parameters, scope, report)
    passes = reader.keyword_form() if keyword_form and reader.keywords else reader.positional_form()
    mode = read_mode(function, report, inline=inline)
    if reader.failed or passes is None or mode is None:
        return None
    return Handler(
        attribute=attribute,
        passes=passes,
        mode=mode,
        args=reader.args,
        returns=reader.returns(),
        keywords=tuple(reader.keywords) if "keywords" in passes else (),
        function=function,
    )


def read_function(found: Any, report: Report) -> Any:
    """Take the function out of what stands in a class body; None after the problem that it is none.

    Args:
        found: A function, perhaps in a `staticmethod` or `classmethod`.
        report: Takes the text of the problem.
    """
    function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
    if callable(function) and hasattr(function, "__code__"):
        return function
    report(f"must be a method, got {found!r}")
    return None


class Signature:
    """The parameters after `self`, sorted, and what is wrong with them."""

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
        self.args: Any = Parameter.empty
        resolved = list(map(self._resolved, parameters))
        self.positional = [p for p in resolved if p.kind in POSITIONAL]
        self.keywords = [p for p in resolved if p.kind is Parameter.KEYWORD_ONLY]
        for p in resolved:
            if p.kind is Parameter.VAR_POSITIONAL:
                self.report(f"takes *{p.name}; write {self.example('args, ctx')}")
            if p.kind is Parameter.VAR_KEYWORD:
                self.report(f"takes **{p.name}; write {self.example('args, ctx')}")

    def report(self, text: str) -> None:
        self.failed = True
        self._report(text)

    def example(self, parameters: str) -> str:
        return _example(self.function, parameters)

    def resolve(self, annotation: Any) -> Any:
        """Evaluate an annotation that is text; UNRESOLVED if it does not."""
        if not isinstance(annotation, str):
            return annotation
        names = getattr(inspect.unwrap(self.function), "__globals__", {})
        try:
            return eval(
                annotation, names, dict(self.scope)
            )  # what `get_type_hints` does, one by one
        except Exception:
            return UNRESOLVED

    def _resolved(self, p: Parameter) -> Parameter:
        annotation = self.resolve(p.annotation)
        # Text stays text for a field of the input: its reader says what is missing.
        keep = annotation is UNRESOLVED and p.kind is Parameter.KEYWORD_ONLY
        return p if keep else p.replace(annotation=annotation)

    def returns(self) -> Any:
        return self.resolve(inspect.signature(self.function).return_annotation)

    def positional_form(self) -> Passes | None:
        """Check `()`, `(args)` and `(args, ctx)`."""
        count = len(self.positional)
        if count > 2:
            names = ", ".join(p.name for p in self.positional)
            self.report(f"takes ({names}) but at most (args, ctx) is passed")
        for p in self.keywords:
            if p.default is Parameter.empty:
                self.report(
                    f"takes the keyword-only {p.name!r}, which nothing passes; declare it as a"
                    " field of the input, or give it a default"
                )
        if self.positional and is_context(self.positional[0]):
            self.report(
                f"{self.positional[0].name!r} stands where the arguments go; write"
                f" {self.example('args, ctx')}"
            )
        elif count == 2:
            self._check_second(self.positional[1])
        if self.failed:
            return None
        if count == 0:
            return "nothing"
        self.args = self.positional[0].annotation
        return "args" if count == 1 else "args, ctx"

    def _check_second(self, p: Parameter) -> None:
        if p.default is not Parameter.empty and not is_context(p):
            self.report(
                f"{p.name!r} would be passed the context; make it a field of the input, or"
                " keyword-only"
            )

    def keyword_form(self) -> Passes | None:
        """Check `(*, a, b)` and `(ctx, *, a, b)`."""
        for p in self.keywords:
            if is_context(p):
                self.report(
                    f"{p.name!r} must not be keyword-only; write {self.example('ctx, *, …')}"
                )
        others = [p for p in self.positional if not is_context(p)]
        if others:
            names = ", ".join(repr(p.name) for p in others)
            self.report(
                f"keyword-only parameters are the input, so {names} is passed nothing; put it"
                " behind the *, or declare an input"
            )
        elif len(self.positional) > 1:
            self.report(f"takes the context twice; write {self.example('ctx, *, …')}")
        if self.failed:
            return None
        return "ctx, keywords" if self.positional else "keywords"


def _example(function: Any, parameters: str) -> str:
    inner = f"self, {parameters}" if parameters else "self"
    return f"def {function.__name__}({inner})"


def read_mode(function: Any, report: Report, *, inline: bool) -> Mode | None:
    """Tell how a function is called; None after the problem that it yields.

    Args:
        function: It.
        report: Takes the text of the problem.
        inline: Whether a sync one runs where it is called.
    """
    if is_generator(function):
        report("yields, but an answer is one value; return a list")
        return None
    if is_async(function):
        return "async"
    return "inline" if inline else "thread"


def is_generator(function: Any) -> bool:
    """Tell whether a call yields."""
    inner = inspect.unwrap(function)
    return inspect.isasyncgenfunction(inner) or inspect.isgeneratorfunction(inner)


def is_async(function: Any) -> bool:
    """Tell whether a call is to be awaited; a decorator that passes a coroutine on is async too."""
    return any(map(inspect.iscoroutinefunction, (function, inspect.unwrap(function))))


def refuse_coroutine(value: Any, name: str) -> None:
    """Refuse a coroutine that nobody awaits.

    Args:
        value: What a sync function returned.
        name: What to make async.

    Raises:
        TypeError: It is one.
    """
    if inspect.iscoroutine(value):
        value.close()  # else Python warns, at some later time, in some other place
        raise TypeError(f"a coroutine was returned; make {name} async, or await it")


def is_context(p: Parameter) -> bool:
    """Tell a parameter that wants the context: by its annotation, or by its name without a type."""
    if p.annotation in (Parameter.empty, UNRESOLVED, Any, object):
        return p.name in _CONTEXT_NAMES
    return mentions(p.annotation, (Context,))


def mentions(annotation: Any, classes: tuple[type, ...]) -> bool:
    """Tell whether a class stands in an annotation: itself, in a union, in a list.

    Args:
        annotation: Any annotation.
        classes: The classes; subclasses count.

    Returns:
        True if one of them is there.
    """
    if isinstance(annotation, type):
        return issubclass(annotation, classes)
    return any(mentions(argument, classes) for argument in typing.get_args(annotation))

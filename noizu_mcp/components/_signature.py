"""Signatures of the methods that answer: their parameters, and whether a call may block or yields.

A signature is read once, when the class is made.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, Final, Literal

from ._context import Context
from ._options import called

Mode = Literal["async", "thread", "inline"]
Report = Callable[[str], None]

POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_CONTEXT_NAMES: Final = ("ctx", "context")

#: The annotation is text that does not evaluate.
UNRESOLVED: Final = Parameter("unresolved", Parameter.KEYWORD_ONLY)


def read_function(found: Any, report: Report) -> Any:
    """Take the function out of what stands in a class body; None after the problem that it is none.

    Args:
        found: A function, perhaps in a `staticmethod` or `classmethod`.
        report: Takes the text of the problem.
    """
    function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
    if callable(function) and hasattr(function, "__code__"):
        return function
    report(f"must be a method, got {called(found)}")
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
        resolved = list(map(self._resolved, parameters))
        self.positional = [p for p in resolved if p.kind in POSITIONAL]
        self.keywords = [p for p in resolved if p.kind is Parameter.KEYWORD_ONLY]
        self._variadic = [p for p in resolved if p.kind in _VARIADIC]

    def report(self, text: str) -> None:
        self.failed = True
        self._report(text)

    def refuse_variadic(self, example: str) -> None:
        """Note `*args` and `**kwargs`: what is passed stands in the signature."""
        for p in self._variadic:
            self.report(f"takes {str(p).partition(':')[0]}; write {example}")

    def example(self, parameters: str) -> str:
        return example_of(self.function, parameters)

    def resolve(self, annotation: Any) -> Any:
        """Evaluate an annotation that is text; UNRESOLVED if it does not."""
        if not isinstance(annotation, str):
            return annotation
        names = getattr(inspect.unwrap(self.function), "__globals__", {})
        try:
            # What `get_type_hints` does, one by one.
            return eval(annotation, names, dict(self.scope))
        except Exception:
            return UNRESOLVED

    def _resolved(self, p: Parameter) -> Parameter:
        annotation = self.resolve(p.annotation)
        # Text stays text for a field of the input: its reader says what is missing.
        keep = annotation is UNRESOLVED and p.kind is Parameter.KEYWORD_ONLY
        return p if keep else p.replace(annotation=annotation)


def example_of(function: Any, parameters: str) -> str:
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

"""The method behind a tool: what it takes, whether it may block, and how it is called.

The signature is read once, when the class is made. What is left for a call is one function of
`(args, ctx)` that passes on what the method takes.
"""

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, Literal

from ._frozen import Frozen
from ._signature import (
    POSITIONAL,
    Mode,
    Report,
    Signature,
    example_of,
    is_context,
    read_function,
    read_mode,
)

#: What a handler is passed. `keywords` are the arguments, spread.
Passes = Literal["nothing", "args", "args, ctx", "keywords", "ctx, keywords"]


class Handler(Frozen):
    """A method that answers calls.

    Attributes:
        attribute: Its name in the class.
        passes: What it takes.
        mode: `async`: awaited; `thread`: may block, runs in a worker thread; `inline`: short, runs
            where it is called.
        first: The name of the parameter that takes all arguments; empty if there is none.
        args: Its annotation; `Parameter.empty` if there is none.
        returns: The annotation of what it returns; `Parameter.empty` if there is none.
        keywords: The keyword-only parameters, if they are the input.
        function: The function itself.
    """

    attribute: str
    passes: Passes
    mode: Mode
    first: str
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
            report(f"takes no self; write {example_of(function, '')}")
            return None
        del parameters[0]
    reader = _Parameters(function, parameters, scope, report)
    reader.refuse_variadic(reader.example("args, ctx"))
    if keyword_form and reader.keywords:
        passes = reader.keyword_form()
    else:
        passes = reader.positional_form(in_kit=keyword_form)
    mode = read_mode(function, report, inline=inline)
    if reader.failed or passes is None or mode is None:
        return None
    return Handler(
        attribute=attribute,
        passes=passes,
        mode=mode,
        first=reader.first,
        args=reader.args,
        returns=reader.resolve(inspect.signature(function).return_annotation),
        keywords=tuple(reader.keywords) if "keywords" in passes else (),
        function=function,
    )


def shown_parameter(p: Parameter) -> str:
    """Write a parameter as the input of a tool needs it: with a type."""
    if p.annotation is not Parameter.empty:
        return str(p.replace(kind=Parameter.KEYWORD_ONLY))
    default = "" if p.default is Parameter.empty else f" = {p.default!r}"
    return f"{p.name}: …{default}"


class _Parameters(Signature):
    """The parameters of a method that is passed arguments and the context."""

    first = ""
    args: Any = Parameter.empty

    def positional_form(self, *, in_kit: bool) -> Passes | None:
        """Check `()`, `(args)` and `(args, ctx)`.

        Args:
            in_kit: Whether the input could stand behind a `*` instead.
        """
        count = len(self.positional)
        if count > 2:
            names = ", ".join(p.name for p in self.positional)
            self.report(
                f"takes ({names}) but at most (args, ctx) is passed{self._cure(in_kit=in_kit)}"
            )
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
            self._check_second(self.positional[1], in_kit=in_kit)
        if self.failed:
            return None
        if count == 0:
            return "nothing"
        self.first = self.positional[0].name
        self.args = self.positional[0].annotation
        return "args" if count == 1 else "args, ctx"

    def _check_second(self, p: Parameter, *, in_kit: bool) -> None:
        # A parameter that is not used may have any name that says so: `_`, `_ctx`.
        if not is_context(p) and not p.name.startswith("_"):
            self.report(f"{p.name!r} would be passed the context{self._cure(in_kit=in_kit)}")

    def _cure(self, *, in_kit: bool) -> str:
        """Say how a signature takes several arguments: these, without the context."""
        if not in_kit:
            return f"; declare a class Input, and write {self.example('args, ctx')}"
        row = ", ".join(shown_parameter(p) for p in self.positional if not is_context(p))
        context = "ctx, " if any(map(is_context, self.positional)) else ""
        return f"; write {self.example(f'{context}*, {row}')}"

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

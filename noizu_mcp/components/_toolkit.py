"""`Toolkit`: a class with many tools, each a method under `@mcp`."""

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from ..schema import docstring_parameters, docstring_summary
from ._declare import ComponentMeta, Declaration
from ._forms import Forms
from ._handler import Handler, read_handler
from ._mcp import Mark, hides_mark, mark_problem, marked_options
from ._options import DECLARED_NAME, METHOD_OPTIONS, TOOLKIT_OPTIONS, read_options
from ._spec import ToolPlan
from ._task_options import task_problems


class Toolkit(metaclass=ComponentMeta):
    """Many small tools in one class: subclass it and put `@mcp` above its methods.

    A method takes `()`, `(args)` or `(args, ctx)` after `self`, or `(*, a, b)` or `(ctx, *, a, b)`,
    where the keyword-only parameters are the input. `staticmethod` and `classmethod` work. Options
    of the class statement are defaults for all of its tools: `category`, `annotations`, `icons`,
    `meta`, `hidden`, `visible`, `timeout`, `max_concurrency`, `requires`, `inline`, `strict`,
    `task`, `starts_task`. With `abstract=True` it is a base that others take their tools from.

    Raises:
        DefinitionError: From the class statement; it lists all that is wrong in the class.
    """

    __mcp_kind__: ClassVar = "tools"
    __mcp_table__: ClassVar = TOOLKIT_OPTIONS
    __mcp__: ClassVar[tuple[ToolPlan, ...]] = ()

    @classmethod
    def definitions(cls) -> list[dict[str, Any]]:
        """Describe the tools as `tools/list` of 2026-07-28 does, in the order of the methods.

        Returns:
            New JSON-ready dicts.
        """
        return copy.deepcopy([plan.definition() for plan in cls.__mcp__])

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        cls.__mcp__ = _Reader(cls, declaration).plans()


class _Reader:
    """Reads the statement of one kit."""

    def __init__(self, cls: type[Toolkit], declaration: Declaration) -> None:
        self.cls = cls
        self.declaration = declaration
        self.defaults = {k: v for k, v in declaration.options.items() if k != "abstract"}

    def plans(self) -> tuple[ToolPlan, ...]:
        methods = self._methods()
        plans = [self._plan(name, *found) for name, found in methods.items()]
        if not methods and not self.declaration.abstract and not self.declaration.problems:
            text = "a kit needs a method under @mcp; a base for kits needs abstract=True"
            self.declaration.problem("", text)
        tools = tuple(plan for plan in plans if plan is not None)
        names = Counter(plan.options["name"] for plan in tools)
        for plan in tools:
            if (count := names[plan.options["name"]]) > 1:
                text = f"one of {count} tools named {plan.options['name']!r}; names differ in a kit"
                self.declaration.problem(plan.answer.attribute, text, plan.answer.attribute)
        return tools

    def _methods(self) -> dict[str, tuple[type, Any, dict[str, Any]]]:
        """Find the marked methods, those of bases first; each with its class and its options.

        An override stays the tool that it overrides, with or without a line of its own; None in
        its place takes the tool away.
        """
        found: dict[str, tuple[type, Any, dict[str, Any]]] = {}
        for cls in reversed(self.cls.__mro__):
            for name, value in vars(cls).items():
                options = marked_options(value)
                if isinstance(value, Mark):
                    self.declaration.problem(name, mark_problem(value), name, cls)
                elif hides_mark(value):
                    kind = type(value).__name__
                    text = f"a {kind} stands above @mcp and hides it; write a method"
                    self.declaration.problem(name, text, name, cls)
                elif options is not None:
                    found[name] = (cls, value, options)
                elif value is None:
                    found.pop(name, None)
                elif name in found:
                    found[name] = (cls, value, found[name][2])
        return found

    def _plan(
        self, name: str, owner: type, value: Any, given: Mapping[str, Any]
    ) -> ToolPlan | None:
        before = len(self.declaration.problems)

        report = self.declaration.reporter(name, owner)
        if name.startswith("_"):
            report("@mcp marks public methods; take the underscore off, or the @mcp")
        good, bad = read_options(METHOD_OPTIONS, given)
        for option, text in bad:
            self.declaration.problem(f"{name}.{option}", text, name, owner)
        options = {**self._kit_defaults(good), **good}
        if not DECLARED_NAME.fullmatch(options.get("name", name)):
            report("the method gives the tool no valid name; write name=…")
        handler = read_handler(
            name,
            value,
            self.declaration.scope,
            report,
            inline=options.get("inline", False),
            keyword_form=not {"input", "input_schema"} & good.keys(),
        )
        if handler is not None and handler.mode == "async" and "inline" in good:
            report("inline is for a sync method; an async one runs where it is called anyway")
        for text in () if handler is None else task_problems(handler, options):
            report(text)
        plan = self._with_schemas(name, handler, options, owner)
        return plan if len(self.declaration.problems) == before else None

    def _kit_defaults(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Leave out the kit's `hidden` and `visible` where the method has a word on either."""
        if {"hidden", "visible"} & options.keys():
            return {k: v for k, v in self.defaults.items() if k not in ("hidden", "visible")}
        return self.defaults

    def _with_schemas(
        self, name: str, handler: Handler | None, options: dict[str, Any], owner: type
    ) -> ToolPlan | None:
        doc = handler.function.__doc__ if handler else None
        forms = Forms(
            self.declaration,
            name,
            in_kit=True,
            strict=options.get("strict", False),
            descriptions=docstring_parameters(doc),
        )
        shape, output = forms.read([options], handler)
        if handler is None:
            return None
        summary = docstring_summary(doc)
        texts = {"name": name} | ({"description": summary} if summary else {})
        return ToolPlan(
            options={**texts, **options},
            input=shape,
            output=output,
            answer=handler,
            source=f"{owner.__module__}.{owner.__qualname__}.{name}",
        )

"""The options `task` and `starts_task`, checked when the class statement runs."""

import pytest

from noizu_mcp import Context, DefinitionError, Tool, Toolkit, mcp, tool
from noizu_mcp.components import expand


class Jobs(Toolkit, task="optional"):
    """A kit whose tools go on as tasks."""

    @mcp
    async def one(self): ...

    @mcp(task="required", starts_task=True)
    async def two(self, ctx: Context, *, a: int = 1): ...

    @mcp(task=None)
    async def three(self): ...


def test_what_a_tool_says():
    """The options are in the spec, and not visible to clients; a kit has defaults."""
    specs = expand([Jobs])
    assert [(spec.task, spec.starts_task) for spec in specs] == [
        ("optional", False),
        ("required", True),
        (None, False),
    ]
    assert all({"execution", "task"}.isdisjoint(spec.definition) for spec in specs)

    class One(Tool, task="optional"):
        """One."""

        def call(self): ...

    assert expand([One])[0].task == "optional"


def test_a_kit_and_its_methods_say_what_runs_again():
    """It is an option of tools that run as tasks."""

    class Imports(Toolkit, task="required", restartable=True):
        @mcp
        async def one(self): ...

        @mcp(restartable=False)
        async def two(self): ...

    assert [spec.restartable for spec in expand([Imports])] == [True, False]
    with pytest.raises(DefinitionError, match=r"restartable: unknown option"):
        tool(Imports, restartable=True)


def test_a_registration_cannot_change_it():
    """They belong to the handler."""
    with pytest.raises(DefinitionError, match=r"task: unknown option"):
        tool(Jobs, task="required")


@pytest.mark.parametrize("value", ["always", True, 5])
def test_wrong_values(value):
    """Two values are allowed."""
    with pytest.raises(DefinitionError, match=r"task: must be 'optional', 'required', or None"):
        type("X", (Tool,), {"task": value, "call": lambda self: None})


async def asynchronous(self, args): ...


async def with_context(self, args, ctx): ...


@pytest.mark.parametrize(
    ("options", "call", "text"),
    [
        ({"starts_task": True}, with_context, r".*write task='optional'"),
        ({"restartable": True}, with_context, r"restartable is for .*write task='optional'"),
        ({"task": "optional", "inline": True}, lambda self: None, r"an inline handler must not"),
        ({"task": "optional", "starts_task": True}, asynchronous, r"starts_task needs an async"),
        (
            {"task": "optional", "starts_task": True},
            lambda self, args, ctx: None,
            r"starts_task needs an async",
        ),
    ],
)
def test_what_does_not_go_together(options, call, text):
    """Invalid combinations are refused for tools and for methods alike."""
    with pytest.raises(DefinitionError, match=f"X.task: {text}"):
        type("X", (Tool,), {**options, "call": call})

    with pytest.raises(DefinitionError, match=f"K.call: {text}"):
        type("K", (Toolkit,), {"call": mcp(**options)(_copy(call))})


def _copy(function):
    """Copy a function, to be marked."""
    made = type(function)(function.__code__, function.__globals__, "call")
    made.__kwdefaults__ = function.__kwdefaults__
    return made

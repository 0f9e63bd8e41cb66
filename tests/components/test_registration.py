"""Registrations: `tool(…)`, the checks of a server, and the resulting specs."""

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_overloads

import attrs
import pytest

from noizu_mcp import DefinitionError
from noizu_mcp.components import (
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
    Toolkit,
    check,
    expand,
    mcp,
    prepare,
    prompt,
    resource,
    resource_template,
    tool,
)
from noizu_mcp.types import Annotations, Icon


class Echo(Tool, category="Own", meta={"k": 1}, hidden=True):
    """Echo it."""

    input_schema = {"type": "object", "required": ["q"]}

    def call(self, args: Any) -> Any:
        return args


class Needs(Tool):
    """Needs something."""

    def __init__(self, index: Any, *rest: Any, extra: Any = None, **more: Any) -> None:
        self.index = index

    def call(self) -> Any:
        return self.index


class One(Toolkit):
    @mcp(visible=False)
    def only(self) -> str:
        """Only one."""
        return "one"


class Two(Toolkit, category="Kit"):
    @mcp
    def first(self) -> str:
        return "first"

    @mcp(hidden=True, category="Tool")
    def second(self) -> str:
        return "second"


class Base(Tool, abstract=True):
    """No tool."""


@attrs.define
class Slotted(Tool, name="slotted.tool", category="C"):
    """Of attrs, which makes a class with slots a second time."""

    factor: int
    plus: int = 1

    def call(self, args: dict[str, int]) -> int:
        return args["a"] * self.factor + self.plus


@dataclasses.dataclass(slots=True)
class SlottedKit(Toolkit, category="C"):
    factor: int

    @mcp
    def times(self, *, a: int) -> int:
        return a * self.factor


def test_classes_with_slots() -> None:
    """They keep their options and what was read from them."""

    class Other(Slotted, name="other"):
        pass

    specs = expand([Slotted(2), SlottedKit(3), Other(4)])
    assert [(each.name, each.category) for each in specs] == [
        *(("slotted.tool", "C"), ("times", "C"), ("other", "C")),
    ]
    assert [each.invoke({"a": 5}, None) for each in specs] == [11, 15, 21]
    assert check([Slotted])[0].text.startswith("Slotted() needs factor;")


def test_a_class_an_instance_and_a_registration() -> None:
    """All three are tools, in order; an instance is used itself."""
    first, second, third = expand([Echo, Needs("index"), tool(Two(), category="X")])[:3]
    assert [first.name, second.name, third.name] == ["echo", "needs", "first"]
    assert second.invoke({}, None) == "index"
    assert repr(first.timeout) == "UNSET"
    assert repr(second) == f"ToolSpec('needs', {__name__}.Needs)"


def test_overrides_replace_what_the_class_says() -> None:
    """Every option of a registration overrides the class's."""
    registration = tool(
        Echo,
        name="alias",
        title="Alias",
        description="Another",
        category="New",
        annotations=Annotations(title="A"),
        icons=[Icon("data:,")],
        meta={"m": 2},
        hidden=False,
        timeout=3,
        max_concurrency=4,
    )
    (spec,) = expand([registration])
    assert spec.definition == {
        "name": "alias",
        "title": "Alias",
        "description": "Another",
        "inputSchema": Echo.definition()["inputSchema"],
        "annotations": {"title": "A"},
        "icons": [{"src": "data:,"}],
        "_meta": {"m": 2, "category": "New"},
    }
    assert (spec.hidden, spec.timeout, spec.max_concurrency) == (False, 3.0, 4)
    assert Echo.definition()["_meta"] == {"k": 1, "category": "Own"}


def test_an_alias_has_its_name_everywhere() -> None:
    """The same class can be registered twice; errors use the name that was called."""
    echo, alias = expand([Echo, tool(Echo, name="alias")])
    _, refused = prepare(alias, {})
    assert refused is not None
    assert refused.content[0].text.startswith("Invalid arguments for tool alias:\n")
    assert echo.name == "echo"


@pytest.mark.parametrize(
    ("overrides", "hidden"),
    [
        ({}, [False, True]),
        ({"hidden": True}, [True, True]),
        ({"hidden": False}, [False, False]),
        ({"visible": True}, [False, False]),
        ({"visible": False}, [True, True]),
        ({"hidden": True, "visible": True}, [True, True]),
    ],
)
def test_hidden_of_a_registration(overrides: Any, hidden: list[bool]) -> None:
    """The registration's option applies to all tools of a kit; hidden overrides visible."""
    assert [spec.hidden for spec in expand([tool(Two, **overrides)])] == hidden


def test_category_of_a_registration() -> None:
    """It overrides the tool's and the kit's; None removes it and keeps other keys."""
    assert [spec.category for spec in expand([Two])] == ["Kit", "Tool"]
    assert {spec.category for spec in expand([tool(Two, category="R")])} == {"R"}
    assert expand([tool(Echo, category=None)])[0].definition["_meta"] == {"k": 1}
    assert "_meta" not in expand([tool(Two, category=None)])[0].definition


def test_a_kit_of_one_tool_can_be_renamed() -> None:
    """Name and description are allowed for a single tool."""
    (spec,) = expand([tool(One, name="another", description="D")])
    assert (spec.name, spec.description, spec.hidden) == ("another", "D", True)


def test_registrations_nest() -> None:
    """A registration of a registration adds to it."""
    inner = tool(Echo, name="alias", title="Inner")
    (spec,) = expand([tool(inner, title="Outer")])
    assert (spec.name, spec.title) == ("alias", "Outer")


def test_names_of_a_run_time_are_free() -> None:
    """At run time any printable name is allowed; source code keeps the specification's rule."""
    registration = tool(Echo, name="workflow:Tech News Digest")
    assert expand([registration])[0].name == "workflow:Tech News Digest"
    (problem,) = check([registration])
    assert str(problem) == (
        "tools[0]: name must be 1 to 128 characters of A-Z a-z 0-9 _ - and '.',"
        " got 'workflow:Tech News Digest'"
    )


TWICE = (
    "tools: the name 'echo' is registered 2 times; give all but one another with tool(…, name=…)"
)
WRONG = {
    "tool(Echo, bogus=1)": "tool(Echo).bogus: unknown option; there are: name, title,",
    "tool(Echo, nmae='x')": "tool(Echo).nmae: unknown option; did you mean 'name'?",
    "tool(Echo, name='a\\nb')": "tool(Echo).name: must be a printable text that is not empty",
    "tool(Echo, hidden='no')": "tool(Echo).hidden: must be True or False, got 'no'",
    "tool(Base)": "tool(Base): Base is abstract; register a subclass of it",
    "tool(Needs)": "tool(Needs): Needs() needs index; register an instance: Needs(index)",
    "tool(Two, name='x')": "tool(Two): name= would be shared by all 2 tools of Two; write it in",
    "tool(Two, title='x', description='y')": "tool(Two): title= and description= would be shared",
    "tool(3)": "tool(3): 3 is not a tool; register a Tool, a Toolkit or a function",
    "tool(str)": "tool(str): the class str is not a tool; write class str(Tool)",
    "tool(one, bogus=1)": "tool(one).bogus: unknown option; there are: name, title,",
}


@pytest.mark.parametrize("source", WRONG)
def test_wrong_registrations(source: str, load: Callable[[str], ModuleType]) -> None:
    """`tool(…)` raises at its own line."""
    module = load("x = 1")
    names = {"tool": tool, "Echo": Echo, "Base": Base, "Needs": Needs, "Two": Two}
    vars(module).update(names)
    text = f"\n\ndef one(): ...\n{source}\n"
    with pytest.raises(DefinitionError) as caught:
        exec(compile(text, str(Path.cwd() / "case.py"), "exec"), vars(module))
    assert str(caught.value).startswith(f"case.py:4: {WRONG[source]}")


def test_check_registrations_makes_no_instance() -> None:
    """Everything that the source shows is found without running code of the author."""

    class Fails(Tool):
        def __init__(self) -> None:
            raise AssertionError

        def call(self) -> None: ...

    assert check([Fails, Echo, tool(Two, hidden=True)]) == []
    found = check([Echo, Base, tool(Echo, title="T"), Two, "x", One()])
    assert [str(problem) for problem in found] == [
        "tools[1]: Base is abstract; register a subclass of it",
        "tools[4]: 'x' is a text; register the class itself",
        TWICE,
    ]


def test_expand_refuses_the_same() -> None:
    """Items that are added at run time are checked, too."""
    with pytest.raises(DefinitionError) as caught:
        expand([Echo, Echo(), Needs])
    assert str(caught.value).splitlines() == [
        "tools[2]: Needs() needs index; register an instance: Needs(index)",
        TWICE,
    ]


def test_other_components_are_sent_where_they_belong() -> None:
    """The error for a resource among the tools names the right list."""

    class Thing(Resource, uri="thing://x"):
        def read(self) -> str:
            return "x"

    (problem,) = check([Thing])
    assert problem.text == "Thing is not a tool; register it in resources = […]"


@pytest.mark.parametrize(
    ("function", "cls"),
    [
        (tool, Tool),
        (tool, Toolkit),
        (prompt, Prompt),
        (resource, Resource),
        (resource_template, ResourceTemplate),
    ],
)
def test_type_checkers_know_the_options_of_registrations(function: Any, cls: Any) -> None:
    """The signature of each function has its options."""
    kind = cls.__mcp_kind__
    signatures = get_overloads(inspect.unwrap(function)) or [function]
    tables = [
        get_args(each.__annotations__["overrides" if i == 0 else "options"])[0]
        for i, each in enumerate(signatures)
    ]

    assert tables[0].__annotations__.keys() == kind.overrides.keys()
    for table in tables[1:]:
        extra = (
            {*ResourceTemplate.__mcp_kind__.of_functions} - {"uri_template"}
            if function is resource
            else kind.of_functions
        )
        assert table.__annotations__.keys() == kind.overrides.keys() | {*extra}


def test_type_checkers_know_the_options_of_methods() -> None:
    """`@mcp(…)` has a table of options, too; a wrong value of each is refused."""
    options = get_overloads(inspect.unwrap(tool))[1].__annotations__["options"]
    # `tool(function, …)` takes the same, and a prefix.
    names = get_args(options)[0].__annotations__.keys() - {"prefix"}
    wrong = dict.fromkeys(names, object())
    with pytest.raises(DefinitionError) as caught:
        type("Kit", (Toolkit,), {"method": mcp(**wrong, bogus=1)(lambda self: None)})

    unknown = [each for each in caught.value.problems if "unknown option" in each.text]
    assert [problem.where for problem in unknown] == ["Kit.method.bogus"]
    listed = unknown[0].text.partition("there are: ")[2].split(", ")
    assert {*listed} == names

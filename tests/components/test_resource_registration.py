"""Registrations of resources, templates and prompts, and a server's checks of its lists."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from noizu_mcp import DefinitionError
from noizu_mcp.components import (
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
    check,
    expand,
    prompt,
    resource,
    resource_template,
    tool,
)


class Config(Resource, uri="config://app", hidden=True):
    def read(self) -> str:
        return "x"


class File(Resource, uri="file:///x"):
    def __init__(self, path: str) -> None:
        self.path = path

    def read(self) -> str:
        return self.path


class Table(ResourceTemplate, uri_template="db://{table}", visible=False):
    def read(self, uri: str, args: Any) -> Any: ...


class Review(Prompt):
    def get(self) -> str:
        return "x"


class Base(Resource, abstract=True):
    """No resource."""


class Echo(Tool):
    def call(self) -> None: ...


def test_both_kinds_in_one_list() -> None:
    """Resources and templates share one list, in its order."""
    items = [Config, Table, resource(File("a"), uri="file:///a"), File("b")]
    specs = expand(iter(items), "resources")
    assert [spec.key for spec in specs] == ["uri", "uriTemplate", "uri", "uri"]
    assert [spec.name for spec in specs] == [
        "config://app",
        "db://{table}",
        "file:///a",
        "file:///x",
    ]
    assert [spec.invoke("u", None) for spec in specs if spec.key == "uri"] == ["x", "a", "b"]
    assert check(items, "resources") == []


@pytest.mark.parametrize(
    ("overrides", "hidden"),
    [
        ({}, True),
        ({"hidden": False}, False),
        ({"visible": True}, False),
        ({"hidden": True, "visible": True}, True),
    ],
)
def test_hidden_of_a_registration(overrides: Any, hidden: bool) -> None:
    """The registration's option overrides the class's; hidden overrides visible."""
    items = [resource(Config, **overrides), resource_template(Table, **overrides)]
    one, many = expand(items, "resources")
    assert (one.hidden, many.hidden) == (hidden, hidden)


def test_registrations_nest() -> None:
    """A registration of a registration adds to it."""
    inner = resource(Config, uri="x:1", title="Inner")
    (spec,) = expand([resource(inner, title="Outer")], "resources")
    assert spec.definition == {"uri": "x:1", "name": "x:1", "title": "Outer"}


def test_names_of_a_run_time_are_free() -> None:
    """At run time a prompt may have any printable name; source code keeps the rule."""
    registration = prompt(Review, name="review: today")
    assert expand([registration], "prompts")[0].name == "review: today"
    (problem,) = check([registration], "prompts")
    assert str(problem) == (
        "prompts[0]: name must be 1 to 128 characters of A-Z a-z 0-9 _ - and '.',"
        " got 'review: today'"
    )


WRONG = {
    "resource(Config, bogus=1)": "resource(Config).bogus: unknown option; there are: uri, name,",
    "resource(Config, uri='x')": "resource(Config).uri: must be an absolute URI like",
    "resource(File)": "resource(File): File() needs path; register an instance: File(path)",
    "resource(Base)": "resource(Base): Base is abstract; register a subclass of it",
    "resource(Table)": (
        "resource(Table): Table is a resource template; write resource_template(Table)"
    ),
    "resource(Echo)": "resource(Echo): Echo is not a resource; register it in tools = […]",
    "resource(3)": "resource(3): 3 is not a resource; register a Resource or a ResourceTemplate",
    "resource_template(Config)": (
        "resource_template(Config): Config is a resource; write resource(Config)"
    ),
    "resource_template(Table, uri='x:a')": "resource_template(Table).uri: unknown option",
    "resource_template(Review)": (
        "resource_template(Review): Review is not a resource; register it in prompts = […]"
    ),
    "prompt(Config)": "prompt(Config): Config is not a prompt; register it in resources = […]",
    "prompt(Prompt)": "prompt(Prompt): Prompt is abstract; register a subclass of it",
    "prompt(str)": "prompt(str): the class str is not a prompt; write class str(Prompt)",
    "prompt(Review, name='')": "prompt(Review).name: must be a printable text that is not empty",
}


@pytest.mark.parametrize("source", WRONG)
def test_wrong_registrations(source: str, load: Callable[[str], ModuleType]) -> None:
    """Each raises at its own line."""
    names = {key: value for key, value in globals().items() if not key.startswith("test")}
    text = f"\n\n\n{source}\n"
    load("x = 1")
    with pytest.raises(DefinitionError) as caught:
        exec(compile(text, str(Path.cwd() / "case.py"), "exec"), dict(names))
    assert str(caught.value).startswith(f"case.py:4: {WRONG[source]}")


def test_check_resources_makes_no_instance() -> None:
    """Everything that the source shows is found without running code of the author."""

    class Fails(Resource, uri="x:fails"):
        def __init__(self) -> None:
            raise AssertionError

        def read(self) -> None: ...

    assert check([Fails, Config, Table], "resources") == []
    found = check(
        [Config, Base, File, resource(Config, title="T"), Table, Table(), Echo], "resources"
    )
    assert [str(problem) for problem in found] == [
        "resources[1]: Base is abstract; register a subclass of it",
        "resources[2]: File() needs path; register an instance: File(path)",
        "resources[6]: Echo is not a resource; register it in tools = […]",
        (
            "resources: the uri 'config://app' is registered 2 times; give all but one another with"
            " resource(…, uri=…)"
        ),
        (
            "resources: the uri_template 'db://{table}' is registered 2 times; the first would"
            " answer for all; keep one of them"
        ),
    ]


TWICE = (
    "prompts: the name 'review' is registered 2 times; give all but one another with"
    " prompt(…, name=…)"
)


def test_check_prompts() -> None:
    """Names must differ, and everything must be a prompt."""
    assert check([Review, prompt(Review, name="other")], "prompts") == []
    found = check([Review, Config, prompt(Review, title="T")], "prompts")
    assert [str(problem) for problem in found] == [
        "prompts[1]: Config is not a prompt; register it in resources = […]",
        TWICE,
    ]


def test_expand_refuses_the_same() -> None:
    """Items that are added at run time are checked, too."""
    with pytest.raises(DefinitionError) as caught:
        expand([File, Config, Config], "resources")
    assert len(caught.value.problems) == 2
    with pytest.raises(DefinitionError, match=r"prompts\[0\]: 3 is not a prompt; register"):
        expand([3, Review, Review], "prompts")
    with pytest.raises(DefinitionError) as caught:
        expand([Review, Review()], "prompts")
    assert str(caught.value) == TWICE


def test_tools_are_told_apart_too() -> None:
    """The error for a component of another kind names its list, for every pair of kinds."""
    (problem,) = check([Config])
    assert problem.text == "Config is not a tool; register it in resources = […]"
    with pytest.raises(DefinitionError, match="Review is not a tool; register it in prompts"):
        tool(Review)


@pytest.mark.parametrize("kind", ["resource", "template", "prompt"])
def test_specs_are_settled(kind: str) -> None:
    """Specs are immutable, and two specs of one class differ."""
    one, many = expand([Config, Table], "resources")
    (ask,) = expand([Review], "prompts")
    spec = {"resource": one, "template": many, "prompt": ask}[kind]
    label = type(spec).__name__
    with pytest.raises(AttributeError, match=f"{label}.hidden cannot be changed"):
        spec.hidden = False
    with pytest.raises(AttributeError, match=f"{label}.hidden cannot be deleted"):
        del spec.hidden
    assert spec != expand([Config], "resources")[0]
    assert {spec: 1}[spec] == 1

"""The catalog tool: everything that a server has, hidden items included."""

from types import SimpleNamespace
from typing import Any

import pytest
import trio

from noizu_mcp.components import expand, prepare, to_result, tool
from noizu_mcp.tools import Catalog

REGISTRY = {
    "tools": [
        ({"name": "echo", "description": "Echo", "_meta": {"category": "Echoes"}}, False),
        ({"name": "Secret", "title": "echo"}, True),
    ],
    "prompts": [({"name": "review"}, False)],
    "resources": [({"uri": "config://app", "name": "app"}, True)],
    "resource_templates": [({"uriTemplate": "db://{table}", "_meta": {"k": 1}}, False)],
}


async def prepare_nothing(*_: Any) -> None:
    """Ask no providers."""


OFFERED = SimpleNamespace(entries=REGISTRY.get, prepare=prepare_nothing)
CTX: Any = SimpleNamespace(server=SimpleNamespace(registry=OFFERED))
(SPEC,) = expand([tool(Catalog, hidden=True)])


def names(**arguments: Any) -> dict[str, list[str]]:
    args, refused = prepare(SPEC, arguments)
    assert refused is None
    answer = trio.run(SPEC.invoke, args, CTX)
    keys = ("name", "uri", "uriTemplate")
    return {
        kind: [next(entry[key] for key in keys if key in entry) for entry in entries]
        for kind, entries in answer.items()
    }


def test_definition() -> None:
    """Name, description and filters are fixed; it waits for providers."""
    assert (SPEC.name, SPEC.hidden, SPEC.mode, SPEC.output) == ("catalog", True, "async", None)
    assert SPEC.description is not None
    assert SPEC.description.startswith("Discover all registered MCP items including hidden tools,")
    assert list(SPEC.input.schema["properties"]) == ["type", "query", "category", "include_hidden"]
    assert "required" not in SPEC.input.schema


def test_everything() -> None:
    """Without filters every kind is listed, each entry complete and with its flag."""
    result, detail = to_result(SPEC, trio.run(SPEC.invoke, prepare(SPEC, {})[0], CTX))
    assert detail is None
    assert result.structured == {
        "tools": [
            {
                "name": "echo",
                "description": "Echo",
                "_meta": {"category": "Echoes"},
                "hidden": False,
                "category": "Echoes",
            },
            {"name": "Secret", "title": "echo", "hidden": True},
        ],
        "prompts": [{"name": "review", "hidden": False}],
        "resources": [{"uri": "config://app", "name": "app", "hidden": True}],
        "resource_templates": [{"uriTemplate": "db://{table}", "_meta": {"k": 1}, "hidden": False}],
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"type": "prompts"}, {"prompts": ["review"]}),
        ({"type": "tools", "include_hidden": False}, {"tools": ["echo"]}),
        ({"type": "tools", "query": "ECHO"}, {"tools": ["echo"]}),
        ({"type": "tools", "query": ""}, {"tools": ["echo", "Secret"]}),
        ({"type": "resources", "query": "config:"}, {"resources": ["app"]}),
        (
            {"type": "resource_templates", "query": "{TABLE}"},
            {"resource_templates": ["db://{table}"]},
        ),
        ({"type": "tools", "category": "echoes"}, {"tools": ["echo"]}),
        ({"type": "tools", "category": "echo"}, {"tools": []}),
        ({"type": "tools", "category": ""}, {"tools": ["echo", "Secret"]}),
        (
            {"category": "Echoes"},
            {"tools": ["echo"], "prompts": [], "resources": [], "resource_templates": []},
        ),
    ],
)
def test_filters(arguments: Any, expected: Any) -> None:
    """Filters are combined by "and", without case; items without a category match none."""
    assert names(**arguments) == expected


def test_wrong_type() -> None:
    """The error for an unknown kind lists the kinds."""
    _, refused = prepare(SPEC, {"type": "tool"})
    assert refused is not None
    assert "tools" in refused.content[0].text

"""The official clients with the examples of the documentation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .reports import call, failure, look_up, texts

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SESSION, LATEST = "2025-11-25", "2026-07-28"
KINDS = {SESSION: "handshake", LATEST: "auto"}
VERSIONS = {
    "python": (SESSION, LATEST),
    "typescript-2": (LATEST,),
    "typescript-1": (SESSION,),
}

LIST = {"name": "list", "kind": "list"}


def _ask(tool: str) -> dict[str, Any]:
    return {"name": tool, "kind": "ask", "mood": "accept", "what": call(tool)}


_CARD = {"method": "card", "number": "4111111111111111"}
_LATE = {"method": "invoice", "due": "2027-01-01"}

#: The scenarios for each server of the examples.
TARGETS: dict[str, list[dict[str, Any]]] = {
    "weather.py": [LIST, call("get_weather", "oslo", city="Oslo")],
    "search.py": [
        LIST,
        call("search", query="install", scope="guides"),
        call("search", "short", query="x"),
        call("catalog", query="search"),
    ],
    "toolkit.py": [
        LIST,
        call("add", a=2, b=40),
        call("book", guest="Ann", nights=2),
        call("files.read", "read", path="toolkit.py"),
    ],
    "raw_schema.py": [
        LIST,
        call("convert", amount=10, **{"from": "eur", "to": "usd"}),
        call("convert", "wrong", amount="ten", **{"from": "eur", "to": "usd"}),
        call("route", stops=["Oslo", "Lima"]),
    ],
    "gated.py": [
        LIST,
        call("drop_table", "locked", table="users"),
        call("unlock", password="sesame"),
        {**LIST, "name": "list again"},
        call("drop_table", "unlocked", table="users"),
        call("drop_table", "key", table="users", key="open-sesame"),
    ],
    "dynamic.py:Notes": [LIST, call("note:Tech News Digest", "note"), call("note:x", "none")],
    "dynamic.py:Plugins": [
        {
            "name": "changes",
            "kind": "changes",
            "add": {"tool": "load", "arguments": {"plugin": "shout"}},
            "remove": {"tool": "unload", "arguments": {"plugin": "shout"}},
        },
    ],
    "resources.py": [
        {"name": "resources", "kind": "resources"},
        {"name": "note", "kind": "read", "uri": "notes://2026/tax"},
        {"name": "none", "kind": "read", "uri": "notes://2026/none"},
        {
            "name": "title",
            "kind": "complete",
            "ref": {"type": "ref/resource", "uri": "notes://{year}/{title}"},
            "argument": {"name": "title", "value": "t"},
            "context": {"year": "2026"},
        },
        {
            "name": "watch",
            "kind": "notices",
            "listen": {"resourceSubscriptions": ["log://today"]},
            "tool": "note",
            "arguments": {"text": "rain"},
        },
    ],
    "prompts.py": [
        {
            "name": "review",
            "kind": "prompt",
            "prompt": "code_review",
            "arguments": {"code": "x = 1", "limit": "2"},
        },
        {
            "name": "dialect",
            "kind": "complete",
            "ref": {"type": "ref/prompt", "name": "translate"},
            "argument": {"name": "dialect", "value": "a"},
            "context": {"language": "English"},
        },
    ],
    "pydantic_shop.py": [
        LIST,
        call("find", text="tea", limit="2"),
        {**_ask("order"), "what": call("order", lines=[{"sku": "TEA-1"}], payment=_CARD)},
        call("order", "wrong", lines=[], payment={"method": "cash"}),
        call("order", "late", lines=[{"sku": "TEA-1"}], payment=_LATE),
    ],
    "asking.py": [_ask("book"), _ask("connect_calendar"), _ask("slogan")],
    "library.py": [
        call("search", words="sea", limit=1),
        call("export", table="members"),
        {"name": "delete", "kind": "ask", "mood": "accept", "what": call("delete_book", number=2)},
        {"name": "row", "kind": "read", "uri": "library://books/1"},
        {"name": "gone", "kind": "read", "uri": "library://books/2"},
    ],
}

pytestmark = pytest.mark.parametrize(
    ("reports", "version"),
    [
        pytest.param(client, version, id=f"{client}-{version}")
        for client, versions in VERSIONS.items()
        for version in versions
    ],
    indirect=["reports"],
    scope="module",
)


@pytest.fixture(scope="module")
def reports(
    request: pytest.FixtureRequest,
    run_once: Callable[..., dict[str, Any]],
    serve_command: Callable[..., list[str]],
) -> dict[str, Any]:
    """Return the report of one client on all examples, in each of its revisions."""

    def connections(folder: Path) -> list[dict[str, Any]]:
        return [
            {
                "label": f"{target} {version}",
                "kind": KINDS[version],
                "version": version,
                "command": serve_command(f"{EXAMPLES}/{target}"),
                "journal": str(folder / "unused"),
                "scenarios": scenarios,
            }
            for target, scenarios in TARGETS.items()
            for version in VERSIONS[request.param]
        ]

    return run_once(request.param, "stdio", connections)


@pytest.fixture
def seen(reports: dict[str, Any], version: str) -> Callable[[str, str], Any]:
    """Return the result of a scenario with a server."""
    return lambda target, name: look_up(reports[f"{target} {version}"])(name)


def names(listing: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in listing["tools"]]


def test_weather(seen):
    """One tool with one argument and a typed answer."""
    assert names(seen("weather.py", "list")) == ["get_weather"]
    oslo = seen("weather.py", "oslo")["structuredContent"]
    assert oslo == {"celsius": -3.5, "sky": "snow"}


def test_search(seen):
    """An alias with its own description, an enforced bound, and a hidden catalog work."""
    alias = seen("search.py", "list")["tools"][1]
    assert (alias["name"], alias["description"]) == ("search", "Alias for search_docs")
    assert seen("search.py", "search")["structuredContent"]["hits"] == 2
    (wrong,) = failure(seen("search.py", "short"))
    assert "/query" in wrong
    (catalog,) = texts(seen("search.py", "catalog"))
    assert "search_docs" in catalog


def test_toolkit(seen, version):
    """Methods are tools: keyword arguments, typed results, a name with a dot."""
    assert "files.read" in names(seen("toolkit.py", "list"))
    total = seen("toolkit.py", "add")
    assert texts(total) == ["42"]
    assert total["structuredContent"] == (42 if version == LATEST else {"result": 42})
    assert seen("toolkit.py", "book")["structuredContent"]["total"] == 160
    (source,) = texts(seen("toolkit.py", "read"))
    assert "Toolkit" in source


def test_raw_schema(seen):
    """Raw schemas: valid arguments reach the tool, others are refused by name."""
    assert names(seen("raw_schema.py", "list")) == ["convert", "route"]
    answer = seen("raw_schema.py", "convert")
    assert texts(answer) == ['{"amount":12.5,"currency":"usd"}']
    (wrong,) = failure(seen("raw_schema.py", "wrong"))
    assert "/amount" in wrong
    assert texts(seen("raw_schema.py", "route")) == ["Oslo → Lima"]


def test_gated(seen, version):
    """A tool appears in a session once it is unlocked; without sessions a key is needed."""
    assert names(seen("gated.py", "list")) == ["unlock"]
    failure(seen("gated.py", "locked"))
    (told,) = texts(seen("gated.py", "unlock"))
    again = names(seen("gated.py", "list again"))
    if version == LATEST:
        assert "open-sesame" in told
        assert again == ["unlock"]
        failure(seen("gated.py", "unlocked"))
    else:
        assert again == ["unlock", "drop_table"]
        assert texts(seen("gated.py", "unlocked")) == ["Dropped users"]
    assert texts(seen("gated.py", "key")) == ["Dropped users"]


def test_notes(seen):
    """Computed tools may have names of any printable characters."""
    listing = seen("dynamic.py:Notes", "list")
    assert names(listing) == ["note:groceries", "note:Tech News Digest"]
    assert texts(seen("dynamic.py:Notes", "note")) == ["read, pick, write"]
    assert seen("dynamic.py:Notes", "none")["error"]["code"] == -32602


def test_plugins(seen):
    """Tools are added and removed while the server runs."""
    changes = seen("dynamic.py:Plugins", "changes")
    assert changes["add"] == ["load", "unload", "shout"]
    assert changes["remove"] == ["load", "unload"]


def test_resources(seen):
    """A resource, computed ones with completion, and a subscription work."""
    uris = [each["uri"] for each in seen("resources.py", "resources")["resources"]]
    assert uris[:2] == ["config://app", "log://today"]
    assert "notes://2026/tax" in uris
    assert seen("resources.py", "note")["contents"][0]["text"] == "Due in May."
    assert seen("resources.py", "none")["error"]["data"] == {"uri": "notes://2026/none"}
    assert seen("resources.py", "title")["values"] == ["tax"]
    notice = seen("resources.py", "watch")["notice"]
    assert notice == ["notifications/resources/updated", "log://today"]


def test_prompts(seen):
    """Typed arguments, messages of both roles, and dependent completion work."""
    ask, answer = seen("prompts.py", "review")["messages"]
    assert ask["content"]["text"] == "Review this code, at most 2 remarks:\nx = 1"
    assert answer == {
        "role": "assistant",
        "content": {"type": "text", "text": "Here is a strict review:"},
    }
    assert seen("prompts.py", "dialect")["values"] == ["American", "Australian"]


def test_asking(seen):
    """A form in a loop with a side effect, a URL, and a model with roots work."""
    book = seen("asking.py", "book")
    (told,) = texts(book["result"])
    assert told == "re: Who is guest 1? (quiet); 1 booked, confirmation sent"
    assert len(book["asked"]) == 2
    assert texts(seen("asking.py", "connect_calendar")["result"]) == ["signing in"]
    slogan = seen("asking.py", "slogan")
    assert texts(slogan["result"]) == ["a model's answer"]
    assert [each["method"] for each in slogan["asked"]] == ["roots/list", "sampling/createMessage"]


def test_library(seen):
    """Tools over a database, a question before a deletion, and rows as resources work."""
    (found,) = texts(seen("library.py", "search"))
    assert "Twenty Thousand Leagues" in found
    assert texts(seen("library.py", "export")) == ["1,Ada\r\n2,Grace\r\n"]
    asked = seen("library.py", "delete")
    assert len(asked["asked"]) == 1
    assert texts(asked["result"]) == ["Walden was deleted"]
    assert '"Jack London"' in seen("library.py", "row")["contents"][0]["text"]
    assert "error" in seen("library.py", "gone")


def test_pydantic_shop(seen, version):
    """Models work as input, output and form, with coercion and our form of errors."""
    find, order = seen("pydantic_shop.py", "list")["tools"]
    assert find["inputSchema"]["properties"]["limit"]["maximum"] == 50
    assert len(order["inputSchema"]["properties"]["payment"]["oneOf"]) == 2
    found = seen("pydantic_shop.py", "find")["structuredContent"]
    rows = found if version == LATEST else found["result"]
    assert [row["sku"] for row in rows] == ["TEA-1", "TEA-2"]
    booked = seen("pydantic_shop.py", "order")
    (question,) = booked["asked"]
    assert question["params"]["requestedSchema"]["properties"]["name"]["title"] == "Full name"
    receipt = booked["result"]["structuredContent"]
    assert receipt["summary"].startswith("1 items for ")
    assert (receipt["total"], receipt["paid_by"]["number"]) == ("4.50", "**********")
    assert failure(seen("pydantic_shop.py", "wrong"))[0].splitlines()[1:] == [
        "/lines: has 0 items, but needs at least 1",
        '/payment/method: must be one of ["card", "invoice"], got "cash"',
    ]
    (late,) = failure(seen("pydantic_shop.py", "late"))
    text = '/payment/due: an invoice is due within 30 days, got string "2027-01-01"'
    assert late.splitlines()[1:] == [text]

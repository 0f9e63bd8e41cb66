"""Contracts: the file, the changes between two of them, and checks in tests."""

import json

import pytest
import trio

from noizu_mcp import (
    Annotations,
    ContentAnnotations,
    Icon,
    McpError,
    Prompt,
    Resource,
    ResourceTemplate,
    Schema,
    Server,
    Toolkit,
    argument,
    connect,
    field,
    mcp,
)
from noizu_mcp.check import contract
from noizu_mcp.check.contract import Change, ContractError, compare


class Kit(Toolkit):
    """Tools."""

    @mcp(annotations=Annotations(read_only_hint=True), icons=[Icon("https://a.example/i.png")])
    def find(self, query: str, limit: int = 5) -> list[str]:
        """Find pages."""
        return [query] * limit


class Config(Resource, uri="config://app", name="config", mime_type="application/json", size=2):
    """The configuration."""

    annotations = ContentAnnotations(priority=0.5, last_modified="2026-01-01T00:00:00Z")

    def read(self, uri, ctx):
        return "{}"


class Note(ResourceTemplate, uri_template="note://{day}"):
    """The note of a day."""

    def read(self, uri, args, ctx):
        return args.day


class Review(Prompt):
    """Review code."""

    class Arguments(Schema):
        """Arguments."""

        code: str
        style: str | None = argument(default=None)

    def get(self, args, ctx):
        return args.code


class Docs(Server, name="docs", version="1.2.3", instructions="Search first."):
    """A server with everything."""

    tools = (Kit,)
    resources = (Config, Note)
    prompts = (Review,)


class NarrowKit(Toolkit):
    """Tools."""

    @mcp
    def find(self, query: str, limit: int = field(default=5, max=10)) -> list[str]:
        """Find pages."""
        return [query] * limit


class StrictKit(Toolkit):
    """Tools."""

    @mcp(annotations=Annotations(read_only_hint=True), strict=True)
    def find(self, query: str, limit: int = 5) -> list[str]:
        """Find pages."""
        return [query] * limit


class Strict(Docs, name="docs", version="3"):
    """The same server, which refuses unknown arguments."""

    tools = (StrictKit,)


class Narrow(Docs, name="docs", version="2"):
    """The same server, with a bound."""

    tools = (NarrowKit,)


@pytest.fixture
def path(tmp_path):
    """The file of the contract of `Docs`."""
    contract.write(Docs, tmp_path / "contract.json")
    return tmp_path / "contract.json"


def test_the_file_has_what_is_listed_and_nothing_volatile(path):
    """The file has no version, icons, size and time; keys are sorted."""
    text = path.read_text(encoding="utf-8")
    found = json.loads(text)

    assert found.keys() == {
        *("contract", "protocol", "instructions", "tools", "resources", "templates", "prompts")
    }
    assert found["instructions"] == "Search first."
    assert found["tools"]["find"].keys() == {
        *("description", "annotations", "inputSchema", "outputSchema")
    }
    assert found["resources"]["config://app"] == {
        "name": "config",
        "description": "The configuration.",
        "mimeType": "application/json",
        "annotations": {"priority": 0.5},
    }
    assert list(found["templates"]) == ["note://{day}"]
    assert list(found["prompts"]) == ["review"]
    assert text == json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def test_a_server_keeps_its_own_contract(path):
    """Without changes nothing is reported."""
    assert contract.check(Docs, path, exact=True) == ()


def test_a_broken_contract_is_an_assertion_error(path):
    """The error lists the changes with an example, and says how to accept them."""
    with pytest.raises(ContractError) as caught:
        contract.check(Narrow, path)

    assert isinstance(caught.value, AssertionError)
    text = str(caught.value)
    assert "noizu-mcp contract write" in text
    assert "breaking: tool find inputSchema: it refuses arguments that it took; example: {" in text
    assert caught.value.changes[0].example["limit"] == 11
    assert caught.value.changes[0].reasons == ("/limit: 11 is greater than the maximum of 10",)


def test_unknown_arguments_that_are_refused_now(path, tmp_path):
    """Refusing unknown arguments is breaking; accepting them again is compatible."""
    with pytest.raises(ContractError) as caught:
        contract.check(Strict, path)

    (change,) = caught.value.changes
    assert (change.place, change.example) == (
        "tool find inputSchema",
        {"query": "", "other": 0},
    )
    assert change.reasons == ('(root): unknown property "other", known are ["query", "limit"]',)
    contract.write(Strict, tmp_path / "strict.json")
    (change,) = contract.check(Docs, tmp_path / "strict.json")
    assert change.effect == "compatible"


def test_an_exact_check_refuses_every_change(tmp_path):
    """In the other direction the change is compatible, but not exact."""
    path = tmp_path / "narrow.json"
    contract.write(Narrow, path)
    effects = {change.effect for change in contract.check(Docs, path)}

    assert effects == {"compatible", "visible"}
    with pytest.raises(ContractError):
        contract.check(Docs, path, exact=True)


def test_some_kinds_alone(tmp_path):
    """A kind that is not in the file is not compared."""
    path = tmp_path / "tools.json"
    contract.write(Docs, path, ["tools"])

    class Other(Server, name="docs", version="3", instructions="Search first."):
        """The tools, and nothing else."""

        tools = (Kit,)

    assert contract.check(Other, path, exact=True) == ()


def test_the_check_speaks_the_version_of_the_file(tmp_path):
    """A contract of an older version is compared with the server's lists in that version."""
    path = tmp_path / "contract.json"
    contract.write(Docs, path)
    old = json.loads(path.read_text(encoding="utf-8"))

    async def other():
        async with connect(Docs, version="2025-06-18") as client:
            return await contract.fetch(client)

    contract.save(trio.run(other), path)
    assert contract.read(path)["protocol"] == "2025-06-18" != old["protocol"]
    assert contract.check(Docs, path, exact=True) == ()


async def test_a_trio_task_is_refused(path):
    """The check would block the loop of the test."""
    with pytest.raises(RuntimeError, match="plain function"):
        contract.check(Docs, path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is no contract"),
        ('{"contract": 1}', "is no contract"),
        ('{"contract": 2, "protocol": "x"}', "has the format 2, and this program reads 1"),
        ('{"contract": 1, "protocol": "x", "tools": []}', "tools is no object with objects"),
        ('{"contract": 1, "protocol": "x", "tools": {"a": 1}}', "tools is no object with objects"),
    ],
)
def test_other_files_are_refused(tmp_path, text, reason):
    """The error has the name of the file and the reason."""
    path = tmp_path / "contract.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ValueError, match=reason):
        contract.read(path)


def test_any_text_can_be_written(tmp_path):
    """Half of a surrogate pair is escaped, and restored."""
    made = {"contract": 1, "protocol": "x", "instructions": "\ud800 é"}
    contract.save(made, tmp_path / "c.json")

    assert contract.read(tmp_path / "c.json") == made


@pytest.mark.parametrize(("code", "fails"), [(-32601, False), (-32603, True)])
def test_a_server_that_cannot_list(tmp_path, code, fails):
    """An unknown list method is accepted; any other error is raised."""

    class Bare(Docs, name="bare", version="1"):
        """It answers the list of templates with an error."""

        async def list_resource_templates(self, cursor, ctx):
            raise McpError(code, "no")

    if fails:
        with pytest.raises(McpError, match="no"):
            contract.write(Bare, tmp_path / "c.json")
    else:
        contract.write(Bare, tmp_path / "c.json")
        assert contract.read(tmp_path / "c.json")["templates"] == {}


def test_a_server_without_resources(tmp_path):
    """Undeclared kinds are empty."""

    class Empty(Server, name="empty", version="1"):
        """Nothing."""

    contract.write(Empty, tmp_path / "c.json")
    found = contract.read(tmp_path / "c.json")

    assert "instructions" not in found
    assert [found[kind] for kind in contract.KINDS] == [{}, {}, {}, {}]


def of(**kinds):
    return {"contract": 1, "protocol": "x", **kinds}


def told(old, new):
    return [(each.effect, each.place, each.text) for each in compare(old, new)]


def test_components_that_come_and_go():
    """Removing a component is breaking; a similar name is suggested."""
    one = {"inputSchema": {"type": "object"}}

    assert told(of(tools={"search": one}), of(tools={"searches": one, "b": one})) == [
        ("breaking", "tool search", "it is gone; was it renamed to searches?"),
        ("compatible", "tool searches", "it is new"),
        ("compatible", "tool b", "it is new"),
    ]
    assert told(of(resources={"a://x": {}}), of()) == [("breaking", "resource a://x", "it is gone")]


def test_results_get_a_schema_or_lose_it():
    """Removing the schema of results is breaking, adding one is not."""
    plain = {"inputSchema": {"type": "object"}}
    typed = {**plain, "outputSchema": {"type": "object"}}

    assert told(of(tools={"a": plain}), of(tools={"a": typed})) == [
        ("compatible", "tool a outputSchema", "its results have a schema now")
    ]
    assert told(of(tools={"a": typed}), of(tools={"a": plain})) == [
        ("breaking", "tool a outputSchema", "its results have no schema any more")
    ]
    wide = {**plain, "outputSchema": {"type": ["object", "null"]}}
    assert told(of(tools={"a": typed}), of(tools={"a": wide}))[0][:2] == (
        "breaking",
        "tool a outputSchema",
    )


def test_texts_are_visible():
    """A model reads descriptions, titles and defaults; calls remain valid."""

    def of_tool(description, **schema):
        properties = {"a": {"type": "string", **schema}}
        return of(
            tools={"t": {"description": description, "inputSchema": {"properties": properties}}}
        )

    assert told(of_tool("x" * 100), of_tool("new", default="b")) == [
        ("visible", "tool t inputSchema/properties/a/default", 'it is new: "b"'),
        ("visible", "tool t description", f'"new", was "{"x" * 78}…'),
    ]
    assert told(of(instructions="a"), of()) == [
        ("visible", "server instructions", 'it is gone: "a"')
    ]


def test_headers_are_visible():
    """A change is "visible": clients mirror the argument, and list the tools after a mismatch."""

    def of_tool(**more):
        return of(tools={"t": {"inputSchema": {"properties": {"a": {"type": "string", **more}}}}})

    assert told(of_tool(), of_tool(**{"x-mcp-header": "Region"})) == [
        ("visible", "tool t inputSchema/properties/a/x-mcp-header", 'it is new: "Region"')
    ]


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        ({}, {"taskSupport": "optional"}, "compatible"),
        ({"taskSupport": "required"}, {"taskSupport": "optional"}, "compatible"),
        ({}, {"taskSupport": "required"}, "breaking"),
        ({"taskSupport": "optional"}, {"taskSupport": "required"}, "breaking"),
        ({"taskSupport": "optional"}, {}, "breaking"),
        ({}, {"taskSupport": "forbidden"}, None),
    ],
)
def test_calls_as_tasks(old, new, effect):
    """A change of `task` that refuses valid calls is breaking."""

    def of_tool(execution):
        return of(
            tools={"t": {"inputSchema": {}, **({"execution": execution} if execution else {})}}
        )

    changes = compare(of_tool(old), of_tool(new))
    assert [each.effect for each in changes] == ([] if effect is None else [effect])


def test_properties_are_told():
    """A removed property that is still accepted is visible; a new one is compatible."""

    def of_tool(*names):
        return of(
            tools={"t": {"inputSchema": {"properties": {key: {"type": "null"} for key in names}}}}
        )

    assert told(of_tool("a", "b"), of_tool("a", "c")) == [
        ("visible", "tool t inputSchema/properties/b", "it is gone"),
        ("compatible", "tool t inputSchema", "it takes all arguments that it took, and others"),
        ("compatible", "tool t inputSchema/properties/c", "it is new"),
    ]


def test_arguments_of_prompts():
    """A new required argument and a removed one are breaking."""
    a, b = {"name": "a"}, {"name": "b", "required": True}

    def of_prompt(*arguments, **rest):
        return of(prompts={"p": {"arguments": list(arguments), **rest}})

    def change(old, new):
        return [
            (effect, place.removeprefix("prompt p "), text)
            for effect, place, text in told(old, new)
        ]

    assert change(of_prompt(a), of_prompt(a, b)) == [
        ("breaking", "arguments/b", "it is new, and required")
    ]
    assert change(of_prompt(a, b), of_prompt(a)) == [("breaking", "arguments/b", "it is gone")]
    assert change(of_prompt(), of_prompt(a)) == [("compatible", "arguments/a", "it is new")]
    assert change(of_prompt(a), of_prompt({**a, "required": True})) == [
        ("breaking", "arguments/a", "it is required now")
    ]
    assert change(of_prompt(b), of_prompt({"name": "b"})) == [
        ("compatible", "arguments/b", "it may be left out now")
    ]
    assert change(of_prompt(a), of_prompt({**a, "title": "A"}, description="P")) == [
        ("visible", "arguments/a/title", 'it is new: "A"'),
        ("visible", "description", 'it is new: "P"'),
    ]


@pytest.mark.parametrize("kind", ["resources", "templates"])
def test_media_types(kind):
    """Programs read contents by their media type."""
    plain, text, html = {}, {"mimeType": "text/plain"}, {"mimeType": "text/html"}

    def effects(old, new):
        return [each.effect for each in compare(of(**{kind: {"u": old}}), of(**{kind: {"u": new}}))]

    assert effects(text, html) == effects(text, plain) == ["breaking"]
    assert effects(plain, text) == ["compatible"]
    assert effects({"name": "a"}, {"name": "b"}) == ["visible"]


def test_a_change_as_json():
    """The JSON has the example if there is one, also null."""
    change = Change("breaking", "tools", "t", "inputSchema", "it is other", None, ("a: b",))
    wire = change.to_json()

    assert wire["example"] is None
    assert wire["reasons"] == ["a: b"]
    assert str(change) == "breaking: tool t inputSchema: it is other; example: null (a: b)"
    long = Change("breaking", "tools", "t", "inputSchema", "it is other", "x" * 1_000)
    assert (len(long.shown_example), long.to_json()["example"]) == (500, "x" * 1_000)
    assert "example" not in Change("visible", "", "", "instructions", "it is new").to_json()

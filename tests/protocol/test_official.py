"""The output of the filters, against the official schema of each revision."""

import json
from pathlib import Path

import pytest

from noizu_mcp.jsonrpc import Request, encode
from noizu_mcp.protocol import (
    ACKNOWLEDGED,
    CHANGES,
    RESOURCE_UPDATED,
    REVISIONS,
    STATELESS,
    ClientPeer,
    ServerPeer,
    SubscriptionNotice,
    Subscriptions,
    adapt_block,
    adapt_definition,
    adapt_implementation,
    adapt_tool,
    adapt_tool_result,
)

SCHEMAS = Path(__file__).resolve().parents[2] / ".." / "shared" / "schema"
ICONS = [{"src": "https://x/i.png", "mimeType": "image/png", "sizes": ["48x48"]}]
RICH = {"title": "T", "description": "d", "icons": ICONS, "_meta": {"example.com/k": 1}}
ANNOTATIONS = {"audience": ["user"], "priority": 0.5, "lastModified": "2025-01-01T00:00:00Z"}
BLOCKS = [
    {"type": "text", "text": "x", "annotations": ANNOTATIONS, "_meta": {}},
    {"type": "image", "data": "AA==", "mimeType": "image/png"},
    {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "r:1", "text": "x", "_meta": {}}},
    {"type": "resource_link", "uri": "r:1", "name": "r", "title": "T", "annotations": ANNOTATIONS},
]
OUTPUTS = [
    ({"type": "integer"}, 5),
    ({"type": "array", "items": {"$ref": "#"}}, [[]]),
    ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "null"}}}, None),
    ({"type": "object", "properties": {"a": True, "b": False}}, {"a": 1}),
]


@pytest.fixture(params=REVISIONS)
def revision(request):
    return REVISIONS[request.param]


@pytest.fixture
def check(revision):
    """Check a value against a definition, and that the revision knows all of it."""
    path = SCHEMAS / revision.name / "schema.json"
    if not path.exists():
        pytest.skip("no official schemas beside the checkout")
    import jsonschema

    document = json.loads(path.read_text())
    key = "$defs" if "$defs" in document else "definitions"
    cls = jsonschema.validators.validator_for(document)

    def check(name, value):
        cls({"$ref": f"#/{key}/{name}", key: document[key]}).validate(value)
        known = document[key][name].get("properties")
        if known is not None and isinstance(value, dict):
            assert set(value) <= set(known)

    return check


def test_definitions(revision, check):
    """Definitions are valid in every revision and have no unknown field."""
    resource = {"name": "r", "uri": "r:1", "size": 3, "annotations": ANNOTATIONS, **RICH}
    template = {"name": "r", "uriTemplate": "r:{x}", "annotations": ANNOTATIONS, **RICH}
    prompt = {"name": "p", "arguments": [{"name": "a", "title": "A", "required": True}], **RICH}
    check("Resource", adapt_definition(resource, revision))
    check("ResourceTemplate", adapt_definition(template, revision))
    adapted = adapt_definition(prompt, revision)
    check("Prompt", adapted)
    check("PromptArgument", adapted["arguments"][0])


def test_implementation(revision, check):
    """`Implementation` is valid in every revision."""
    full = {"name": "n", "version": "1", "websiteUrl": "https://x", **RICH}
    del full["_meta"]
    check("Implementation", adapt_implementation(full, revision))


@pytest.mark.parametrize(("schema", "value"), OUTPUTS)
def test_tools(revision, check, schema, value):
    """Tools and their results are valid, whatever the tool returns."""
    tool = {
        "name": "t",
        "inputSchema": {"type": "object", "properties": {"any": True}},
        "outputSchema": schema,
        "annotations": {"readOnlyHint": True},
        "execution": {"taskSupport": "optional"},
        **RICH,
    }
    result = {"content": BLOCKS, "structuredContent": value, "isError": False}
    if revision.stateless:
        result["resultType"] = "complete"
    adapted = adapt_tool(tool, revision)
    check("Tool", adapted)
    sent = adapt_tool_result(result, schema, revision)
    check("CallToolResult", sent)
    if "outputSchema" in adapted:
        import jsonschema

        jsonschema.Draft202012Validator(adapted["outputSchema"]).validate(sent["structuredContent"])


def test_blocks(check, revision):
    """Blocks for 2025-03-26 are valid everywhere."""
    for block in BLOCKS:
        adapted = adapt_block(block)
        name = {"text": "TextContent", "image": "ImageContent", "audio": "AudioContent"}
        check(name.get(adapted["type"], "EmbeddedResource"), adapted)


def test_stateless_wire(check, revision):
    """Requests, errors and notices of 2026-07-28 fit the schema."""
    if not revision.stateless:
        pytest.skip("only of the stateless revision")
    client = ClientPeer({"name": "c", "version": "1"}, {"elicitation": {}}, 10)
    client.revision = STATELESS
    client.log_level = "info"
    wanted = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["r:1"]}}
    listen = client.request("subscriptions/listen", wanted, progress=True)
    check("SubscriptionsListenRequest", json.loads(encode(listen)))
    bad = {**listen.params, "_meta": {**listen.params["_meta"]}}
    bad["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1999-01-01"
    refusal = ServerPeer(1).receive(Request(1, "tools/list", bad))
    check("UnsupportedProtocolVersionError", json.loads(encode(refusal.message)))
    capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
    listening = Subscriptions(10).read(1, listen.params, capabilities)
    params = {"notifications": listening.agreed()}
    notices = {
        "SubscriptionsAcknowledgedNotification": SubscriptionNotice(ACKNOWLEDGED, params),
        "ToolListChangedNotification": SubscriptionNotice(CHANGES["tools"][0]),
        "ResourceUpdatedNotification": SubscriptionNotice(RESOURCE_UPDATED, {"uri": "r:1"}),
    }
    for name, notice in notices.items():
        check(name, json.loads(notice.encode(1)))

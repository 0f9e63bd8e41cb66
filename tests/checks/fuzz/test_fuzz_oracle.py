"""The check of messages agrees with the official schemas, if the checkout has them beside it."""

import json
from pathlib import Path

import pytest
from hypothesis import strategies as st

from noizu_mcp.check.fuzz._forms import fault_in_notification, fault_in_result
from noizu_mcp.check.fuzz._values import draw
from noizu_mcp.testing import from_schema, violating

SCHEMAS = Path(__file__).resolve().parents[3] / ".." / "shared" / "schema"
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
RESULTS = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "prompts/list": "ListPromptsResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "tools/call": "CallToolResult",
    "prompts/get": "GetPromptResult",
    "resources/read": "ReadResourceResult",
    "completion/complete": "CompleteResult",
}
NOTIFICATIONS = (
    *("Cancelled", "Progress", "LoggingMessage", "ResourceUpdated"),
    *("ToolListChanged", "PromptListChanged", "ResourceListChanged"),
)
FORMATS = {"byte": st.sampled_from(["", "aGk=", "AAAA"])}


@pytest.fixture(params=REVISIONS)
def official(request):
    """Return the revision, and a function from the name of a definition to its schema."""
    path = SCHEMAS / request.param / "schema.json"
    if not path.exists():
        pytest.skip("no official schemas beside the checkout")
    document = json.loads(path.read_text())
    part = "$defs" if "$defs" in document else "definitions"

    def find(name):
        if name not in document[part]:
            pytest.skip(f"{request.param} has no {name}")
        return {"$ref": f"#/{part}/{name}", part: _looser(document[part])}

    return request.param, find


def _looser(definitions):
    """Allow values that the specification allows and the generated schemas do not.

    `JSONValue` has neither fractions nor null, and capabilities may have both.
    """
    return {**definitions, **({"JSONValue": True} if "JSONValue" in definitions else {})}


@pytest.mark.slow
@pytest.mark.parametrize("method", RESULTS)
def test_results_agree_with_the_official_schema(official, method):
    """A result is a finding if and only if the official schema refuses it."""
    version, find = official
    schema = find(RESULTS[method])
    fitting = draw(from_schema(schema, formats=FORMATS), 20, 0)
    refused = [(fault_in_result(version, method, each), each) for each in fitting]
    near = [each for each in draw(violating(schema, formats=FORMATS), 40, 0) if type(each) is dict]
    for each in near:
        # Results of other types have other members.
        if isinstance(each.get("resultType"), str):
            each["resultType"] = "complete"
    accepted = [each for each in near if fault_in_result(version, method, each) is None]

    assert [each for each in refused if each[0]] == []
    assert accepted == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTIFICATIONS)
def test_notifications_agree_with_the_official_schema(official, name):
    """A notification is a finding if and only if the official schema refuses it."""
    version, find = official
    schema = find(f"{name}Notification")
    fitting = draw(from_schema(schema, formats=FORMATS), 20, 0)
    refused = [(fault_in_notification(version, each), each) for each in fitting]
    method = fitting[0]["method"]
    near = draw(violating(schema, formats=FORMATS), 40, 0)
    # The envelope is checked with the message.
    inner = [each for each in near if isinstance(each, dict) and each.get("method") == method]
    inner = [each for each in inner if each.get("jsonrpc", "2.0") == "2.0"]
    if version >= "2025-11-25":
        inner = [each for each in inner if "jsonrpc" in each]
    accepted = [each for each in inner if fault_in_notification(version, each) is None]

    assert [each for each in refused if each[0]] == []
    assert accepted == []

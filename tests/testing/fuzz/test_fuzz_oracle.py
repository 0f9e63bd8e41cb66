"""The check of messages agrees with the official schemas, where the checkout has them beside it."""

import json
from pathlib import Path

import pytest
from hypothesis import strategies as st

from noizu_mcp import ProtocolError, types
from noizu_mcp.testing import from_schema
from noizu_mcp.testing.fuzz._values import draw

SCHEMAS = Path(__file__).resolve().parents[3] / ".." / "shared" / "schema"
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
READERS = {
    "CallToolResult": types.ToolResult,
    "GetPromptResult": types.PromptResult,
    "ReadResourceResult": types.ReadResult,
    "CompleteResult": types.Completion,
    "Tool": types.ToolDefinition,
    "Prompt": types.PromptDefinition,
    "Resource": types.ResourceDefinition,
    "ResourceTemplate": types.ResourceTemplateDefinition,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("revision", REVISIONS)
def test_what_the_schema_allows_is_no_finding(revision, name):
    """A result, or a definition, that fits the official schema is read without an error."""
    path = SCHEMAS / revision / "schema.json"
    if not path.exists():
        pytest.skip("no official schemas beside the checkout")
    document = json.loads(path.read_text())
    part = "$defs" if "$defs" in document else "definitions"
    schema = {"$ref": f"#/{part}/{name}", part: document[part]}
    formats = {"byte": st.sampled_from(["", "aGk=", "AAAA"])}
    refused = []
    for value in draw(from_schema(schema, formats=formats), 30, 0):
        try:
            READERS[name].from_wire(value)
        except ProtocolError as error:
            refused.append((str(error), value))

    assert refused == []

"""Sequences: values of earlier calls become arguments of the next."""

import json
from functools import partial

import pytest
import trio

from noizu_mcp import Completion, Prompt, Schema, ToolResult
from noizu_mcp.check.fuzz import fuzz

from .recorded import recorder, schema_of

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
READ = schema_of({"note_id": NUMBER, "fileName": TEXT, "topics": TEXT, "mood": TEXT}, ["note_id"])
DEEP = {"note_id": 111_111}
for _ in range(9):
    DEEP = {"a": DEEP}


class Talk(Prompt):
    """Talk."""

    class Arguments(Schema):
        mood: str

    def get(self, args, ctx):
        return ["x"]

    def complete(self, argument, prefix, ctx):
        return Completion(["calm as the sea"])


RESULTS = {
    "create": {"id": 424_242, "name": "kept name", "topic": "kept topic"},
    "write": ToolResult(["{", json.dumps([{"note": {"id": 777_777}}])]),
    "fail": ToolResult([json.dumps({"id": 555_555})], is_error=True),
    "odd": {"id": "forty-two", "deep": DEEP, "name": "x" * 1001},
}


@pytest.fixture(scope="module")
def sent():
    """Fuzz a tool beside others with results; return its arguments, each with its values."""
    tools = {"read": READ, **dict.fromkeys(RESULTS, schema_of({}))}
    server, calls = recorder(tools, {name: lambda _, r=r: r for name, r in RESULTS.items()})
    both = type("Both", (server,), {"prompts": [Talk]}, name="both", version="1")
    trio.run(partial(fuzz, both, examples=6))
    return {name: [each.get(name) for each in calls["read"]] for name in READ["properties"]}


def test_a_result_fills_an_argument_of_its_name(sent):
    """The `id` of a result is tried as `note_id`."""
    assert 424_242 in sent["note_id"]


def test_json_in_text_is_read(sent):
    """A tool without structured content may write its result as text."""
    assert 777_777 in sent["note_id"]


def test_a_value_that_does_not_fit_is_not_taken(sent):
    """The schema of the argument decides."""
    assert "forty-two" not in sent["note_id"]


def test_failures_teach_nothing(sent):
    """Results of failed calls are no values."""
    assert 555_555 not in sent["note_id"]


def test_names_that_stand_for_others(sent):
    """`name` fills `fileName`, and a value fills the plural of its name."""
    assert "kept name" in sent["fileName"]
    assert "kept topic" in sent["topics"]


def test_completions_are_values(sent):
    """A completion of an argument is a value for it."""
    assert "calm as the sea" in sent["mood"]


def test_deep_and_long_values(sent):
    """They are not kept."""
    assert 111_111 not in sent["note_id"]
    assert "x" * 1001 not in sent["fileName"]


async def test_names_are_limited():
    """Of many names the first ones are kept."""
    results = {"create": lambda _: {**{f"n{each}": 1 for each in range(600)}, "id": 424_242}}
    server, calls = recorder({"create": schema_of({}), "read": READ}, results)
    await fuzz(server, examples=1)

    assert 424_242 not in [each.get("note_id") for each in calls["read"]]

"""Invalid arguments get an answer that a model can act on."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.components import Tool, expand, prepare
from noizu_mcp.schema import Schema, field
from noizu_mcp.types import META_VIOLATIONS


class Order(Tool):
    """Order things."""

    class Input(Schema):
        query: str = field(min_length=2)
        limit: int = field(default=10, max=50)
        counts: dict[str, int] = field(factory=dict)

    def call(self, args: Input) -> Any:
        return args


(SPEC,) = expand([Order])


def test_all_violations_are_told_twice() -> None:
    """The text has every violation, and `_meta` has the same list for programs."""
    value, refused = prepare(SPEC, {"query": "x", "limit": "3"})
    assert value is None
    assert refused is not None
    assert refused.is_error
    lines = refused.content[0].text.splitlines()
    assert lines[0] == "Invalid arguments for tool order:"
    assert [line.split(":")[0] for line in lines[1:]] == ["/query", "/limit"]
    assert refused.meta is not None
    found = refused.meta[META_VIOLATIONS]
    assert [violation["path"] for violation in found] == ["/query", "/limit"]
    assert refused.to_wire()["isError"] is True


def test_the_number_of_violations_is_limited() -> None:
    """The number is limited in the text and in `_meta`, whatever the size of the arguments."""
    counts = {f"{n}{'n' * 10_000}": "x" for n in range(1000)}
    _, refused = prepare(SPEC, {"query": "xx", "counts": counts})
    assert refused is not None
    assert refused.meta is not None
    assert len(refused.meta[META_VIOLATIONS]) == 100
    text = refused.content[0].text
    assert text.splitlines()[-1] == "… and at least 80 more"
    assert len(json.dumps(refused.to_wire())) < 100_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["query", "limit"]), inner)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(JSON)
def test_any_arguments_are_built_or_refused(arguments: Any) -> None:
    """Any arguments are accepted or refused, without another exception."""
    value, refused = prepare(SPEC, arguments)
    if refused is None:
        assert isinstance(value, Order.Input)
    else:
        assert value is None
        assert refused.meta is not None
        assert refused.meta[META_VIOLATIONS]


def test_text_for_other_types_is_read() -> None:
    """Text is read without a server, too; the result is built like any other."""
    value, refused = prepare(SPEC, {"query": "xx", "limit": "3"})

    assert refused is None
    assert (value.query, value.limit) == ("xx", 3)

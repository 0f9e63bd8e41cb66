"""Requests of a server to a client, and their answers, as values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import (
    Accept,
    Cancel,
    Content,
    Decline,
    InputRequest,
    InputRequired,
    ProtocolError,
    Root,
    SamplingResult,
)

TEXT = {"type": "text", "text": "hi"}


def test_the_three_answers_say_what_they_are():
    """Each class has its `action`, which cannot be passed."""
    assert Accept({"a": 1}).action == "accept"
    assert (Decline().action, Cancel().action) == ("decline", "cancel")
    assert Accept(1) == Accept(1) != Accept(2)
    assert Decline() == Decline() != Cancel()
    assert len({Accept([1]), Accept([1]), Decline(), Decline(), Cancel()}) == 3
    assert repr(Accept({"a": 1})) == "Accept({'a': 1})"
    assert repr(Cancel()) == "Cancel()"
    with pytest.raises(TypeError):
        Accept(1, "decline")


def test_roots_travel():
    """Roots are written with and without a name."""
    wire = {"uri": "file:///a", "name": "A", "_meta": {"k": 1}, "more": 2}
    root = Root.from_wire(wire, "root")
    assert (root.uri, root.name, root.meta) == ("file:///a", "A", {"k": 1})
    assert root.to_wire() == wire
    assert Root("file:///b").to_wire() == {"uri": "file:///b"}


@given(
    texts=st.lists(st.text(max_size=5), min_size=1, max_size=3),
    reason=st.none() | st.text(max_size=5),
    meta=st.none() | st.dictionaries(st.text(max_size=3), st.integers()),
)
def test_sampling_results_survive_the_way(texts, reason, meta):
    """A result that was written is read as an equal one."""
    blocks = [Content.text(text) for text in texts]
    made = SamplingResult(
        role="assistant", content=blocks, model="m", stop_reason=reason, meta=meta
    )
    read = SamplingResult.from_wire(made.to_wire())
    assert (read.role, read.model, read.stop_reason) == ("assistant", "m", reason)
    assert [block.text for block in read.content] == texts
    assert read.text == "".join(texts)
    assert read.meta == meta
    assert isinstance(made.to_wire()["content"], dict if len(texts) == 1 else list)


def test_the_text_of_a_result_is_that_of_its_texts():
    """Other blocks have no text."""
    use = {"type": "tool_use", "id": "1", "name": "add", "input": {}}
    content = [TEXT, use, TEXT]
    wire = {"role": "assistant", "model": "m", "content": content, "_meta": {"a": 1}}
    result = SamplingResult.from_wire(wire)
    assert result.text == "hihi"
    assert result.to_wire() == wire


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        (5, "sampling result: expected an object"),
        ({"model": "m", "content": TEXT}, "sampling result.role: expected a string"),
        ({"role": "user", "content": TEXT}, "sampling result.model: expected a string"),
        ({"role": "user", "model": "m"}, "content"),
        ({"role": "user", "model": "m", "content": TEXT, "_meta": 5}, "result._meta: expected an"),
        ({"role": "user", "model": "m", "content": TEXT, "stopReason": 5}, "stopReason: expected"),
        ({"role": "user", "model": "m", "content": [TEXT, 5]}, "content"),
    ],
)
def test_malformed_results(wire, text):
    """The error has the field."""
    with pytest.raises(ProtocolError, match=text):
        SamplingResult.from_wire(wire)


def test_questions_as_they_go_out():
    """A request without params has empty ones."""
    assert InputRequest("roots/list").to_wire()["method"] == "roots/list"
    request = InputRequest("elicitation/create", {"message": "m"})
    assert request.to_wire() == {"method": "elicitation/create", "params": {"message": "m"}}


def test_a_round_asks_for_something():
    """A round has questions, a state, or both."""
    assert InputRequired(state="").state == ""
    assert InputRequired({"q": InputRequest("roots/list")}).state is None
    with pytest.raises(ValueError, match="needs requests, a state, or both"):
        InputRequired()

"""State that travels through the client: valid for one request; all failures look the same."""

import base64
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp import DefinitionError, McpError, Server
from noizu_mcp.server import Sealer

from ..kit.servers import Clock

INVALID_STATE = "Invalid requestState"
OLD, NEW = "an old secret of the server 9aQ4xyz", "a new secret of the server 7Xk2xyz"
BINDING = {"principal": None, "method": "tools/call", "name": "t", "arguments": "digest"}
CONTENT = {"answers": {"q": {"action": "accept"}}, "round": 1, "text": "é\u2028"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


def refused(sealer, state, binding=BINDING):
    """Open an invalid text; return the error."""
    with pytest.raises(McpError) as caught:
        sealer.open(state, binding)
    error = caught.value
    assert (error.code, error.message, error.data) == (-32602, INVALID_STATE, None)
    assert error.__cause__ is None
    return error


@pytest.fixture
def reason(caplog):
    """Return a function that returns the one new reason in the log."""
    caplog.set_level(logging.WARNING, "noizu_mcp")

    def read():
        (record,) = caplog.records
        caplog.clear()
        return record.getMessage().removeprefix("a requestState was refused: ")

    return read


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(content=json_values)
def test_what_was_sealed_opens(content):
    """Any JSON value is restored; its sealed text differs each time."""
    sealer = Sealer([NEW])
    state = sealer.seal(content, BINDING)
    assert sealer.open(state, BINDING) == content
    assert sealer.seal(content, BINDING) != state
    assert state.isascii()
    assert "answers" not in base64.urlsafe_b64decode(state + "==").decode("latin-1")


def test_every_byte_counts():
    """A state with one bit changed anywhere is refused."""
    sealer = Sealer([NEW])
    raw = base64.urlsafe_b64decode(sealer.seal({"a": 1}, {}) + "==")
    for place in range(len(raw)):
        changed = bytearray(raw)
        changed[place] ^= 1
        refused(sealer, base64.urlsafe_b64encode(changed).rstrip(b"=").decode(), {})


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(state=st.text(max_size=100) | st.binary(max_size=100) | json_values)
def test_garbage_is_refused(state):
    """Made-up strings and other values are refused."""
    refused(Sealer([NEW]), state)


def test_the_reasons_are_in_the_log_only(reason):
    """The client gets the same error for each reason; only the log distinguishes them."""
    clock = Clock(1_000_000.0)
    sealer = Sealer([NEW], 60, clock=clock)
    state = sealer.seal(CONTENT, BINDING)
    for garbage in (None, 5, "é", "@@@@", "A"):
        refused(Sealer([NEW]), garbage)
        assert reason() == "it is no base64 text"
    refused(sealer, state + "=")
    assert reason() == "it is not the text that was sealed, but another spelling"
    refused(sealer, state[:20])
    assert reason() == "it is too short"
    refused(sealer, state[:-3] + ("AAA" if state[-3:] != "AAA" else "BBB"))
    assert reason() == "it was changed on its way"
    refused(Sealer([OLD]), state)
    assert reason() == "it was sealed with a key that is not, or no longer, in the ring"
    for name in BINDING:
        refused(sealer, state, {**BINDING, name: "other"})
        assert reason() == f"it belongs to another request: {name} differ"
    clock.now += 59
    assert sealer.open(state, BINDING) == CONTENT
    clock.now += 1
    refused(sealer, state)
    assert reason() == "it has expired"


def test_a_reason_is_logged_once_a_minute(reason):
    """A client that repeats a state does not fill the log."""
    sealer = Sealer([NEW])
    for _ in range(5):
        refused(sealer, "A")
    assert reason() == "it is no base64 text"


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. \n"


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(data=st.data(), content=json_values)
def test_what_was_sealed_has_one_spelling(data, content):
    """No variant of a sealed text opens: padding, another alphabet, or stray bits at its end."""
    sealer = Sealer([NEW])
    state = sealer.seal(content, BINDING)
    spellings = [
        state.replace("-", "+").replace("_", "/"),
        state + "=" * data.draw(st.integers(1, 5)),
        state[:-1] + data.draw(st.sampled_from(ALPHABET)),
        data.draw(st.sampled_from(" \n")) + state,
        base64.b64encode(base64.urlsafe_b64decode(state + "==")).decode(),
    ]
    for other in spellings:
        if other != state:
            refused(sealer, other)
    assert sealer.open(state, BINDING) == content


def test_keys_rotate():
    """The first key seals and every key opens; a removed key opens nothing."""
    before = Sealer([OLD]).seal(CONTENT, BINDING)
    both = Sealer([NEW, OLD])
    assert both.open(before, BINDING) == CONTENT
    after = both.seal(CONTENT, BINDING)
    assert Sealer([NEW]).open(after, BINDING) == CONTENT
    refused(Sealer([OLD]), after)
    refused(Sealer([NEW]), before)


def test_a_state_is_used_once():
    """Opening and marking both use up a state, but not for the wrong owner."""
    sealer = Sealer([NEW])
    state, known = sealer.seal(CONTENT, BINDING), sealer.seal(CONTENT, BINDING)
    with pytest.raises(McpError, match=INVALID_STATE):
        sealer.open_once(state, {**BINDING, "name": "other"})
    assert sealer.open_once(state, BINDING) == CONTENT
    sealer.use(known)
    for each in (state, known):
        with pytest.raises(McpError, match="was used before; make the call again"):
            sealer.open_once(each, BINDING)


@pytest.mark.parametrize("ahead", [0, 100])
def test_used_states_that_are_forgotten(ahead):
    """Of more than 20,000 states the oldest are dropped, and others of their age are refused."""
    clock, other = Clock(1_000_000.0), Clock(1_000_000.0)
    other.now += ahead  # the clock of the other node, which seals
    sealer, node = Sealer([NEW], clock=clock), Sealer([NEW], clock=other)
    states = []
    for _ in range(4):
        states.append(node.seal(CONTENT, BINDING))
        clock.now += 1
        other.now += 1
    for state in states[:2]:
        assert sealer.open_once(state, BINDING) == CONTENT
    for number in range(20_000 - 2):
        sealer.use(f"other {number}")
    clock.now += 1
    other.now += 1
    late = node.seal(CONTENT, BINDING)
    clock.now += 1
    assert sealer.open_once(late, BINDING) == CONTENT
    for state in states[:1] if ahead else states:
        with pytest.raises(McpError, match="was used before"):
            sealer.open_once(state, BINDING)


def test_keys_of_the_environment(monkeypatch):
    """Nodes share keys of the environment; without them the servers of a process share one."""
    monkeypatch.setenv("NOIZU_MCP_STATE_KEYS", f" {NEW} , {OLD},")
    state = Sealer(None).seal(CONTENT, BINDING)
    assert Sealer([NEW]).open(state, BINDING) == CONTENT
    monkeypatch.delenv("NOIZU_MCP_STATE_KEYS")
    state = Sealer(None).seal(CONTENT, BINDING)
    assert Sealer(None).open(state, BINDING) == CONTENT
    monkeypatch.setenv("NOIZU_MCP_STATE_KEYS", "short")
    with pytest.raises(ValueError, match="at least 32 random characters"):
        Sealer(None)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"state_keys": "one text that is long"}, "must be a list of texts"),
        ({"state_keys": [5]}, "must be a list of texts"),
        ({"state_keys": 5}, "must be a list of texts"),
        ({"state_keys": None}, "must be a list of texts"),
        ({"state_keys": {OLD, NEW}}, "must be a list of texts"),
        ({"state_keys": iter([OLD])}, "must be a list of texts"),
        ({"state_keys": []}, "must be a list of texts, one at least"),
        (
            {"state_keys": ["31 characters are one too few 1"]},
            "needs at least 32 random characters",
        ),
        ({"state_keys": ["a" * 50]}, "needs at least 32 random characters"),
        ({"state_keys": ["changeme" * 6]}, "needs at least 32 random characters"),
        ({"state_keys": ["0123456789abcdef" * 2]}, r"make one with: python -c \"import secrets; "),
        ({"state_ttl": 0}, r"state_ttl: must be seconds above 0, got 0$"),
        ({"state_ttl": None}, "must be seconds above 0"),
        ({"state_ttl": "1 h"}, "state_ttl"),
    ],
)
def test_wrong_options_of_a_server(options, text):
    """Invalid options are refused when the class is made."""
    with pytest.raises(DefinitionError, match=text):
        type("S", (Server,), {"name": "s", "version": "1", **options})


def test_options_of_a_server():
    """Options of a server reach its sealer."""

    class S(Server, name="s", version="1", state_keys=[NEW, OLD], state_ttl=5):
        pass

    state = S().sealer.seal(CONTENT, BINDING)
    assert Sealer([NEW]).open(state, BINDING) == CONTENT
    assert S.options.state_ttl == 5

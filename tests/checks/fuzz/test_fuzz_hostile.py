"""Hostile messages, and the reactions that are allowed."""

import pytest

from noizu_mcp.check.fuzz._case import Replies, Step
from noizu_mcp.check.fuzz._hostile import HOSTILE, Hostile, _judge
from noizu_mcp.check.raw import Conversation, Exchange

RESULT = {"result": {}}
ERROR = {"error": {"code": -32601, "message": "no"}}
STRAY = (("message", "an answer to no request: {}"),)


def outcome(answer=None, *, faults=(), responsive=True, **members):
    return Replies(Step("x"), Exchange("x", answer, **members), faults, responsive=responsive)


RIGHT = [
    ("error", outcome(ERROR)),
    ("error", outcome({"result": {"isError": True, "content": []}})),
    ("error", outcome(status=400)),
    ("refusal", outcome(ERROR)),
    ("refusal", outcome()),
    ("nothing", outcome()),
    ("anything", outcome(RESULT, faults=STRAY)),
]
WRONG = [
    ("error", outcome(RESULT)),
    ("error", outcome()),
    ("error", outcome(ERROR, faults=STRAY)),
    ("refusal", outcome(RESULT)),
    ("nothing", outcome(faults=STRAY)),
    ("anything", outcome(ended=True)),
    ("anything", outcome(responsive=False)),
    ("anything", outcome(status=500)),
]


def message(reaction, codes=()):
    return Hostile("x", reaction, lambda _: {}, codes)


@pytest.mark.parametrize(("reaction", "found"), RIGHT)
def test_reactions_that_are_allowed(reaction, found):
    """An error where it is due, silence where it is due, and a server that goes on."""
    assert _judge(message(reaction), found) is None


@pytest.mark.parametrize(("reaction", "found"), WRONG)
def test_reactions_that_are_not(reaction, found):
    """A result for nonsense, no answer to a request, and a server that ends."""
    assert _judge(message(reaction), found)


def test_codes():
    """Another code is wrong if the specification defines one."""
    assert _judge(message("error", (-32601,)), outcome(ERROR)) is None
    assert _judge(message("error", (-32602,)), outcome(ERROR))


@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda each: each.name)
def test_each_message_can_be_made(hostile, stateless):
    """It is an object, or bytes of one line; on 2026-07-28 it has `_meta`."""
    made = hostile.make(Conversation(None, 1.0, stateless=stateless, name="test"))

    if isinstance(made, bytes):
        assert b"\n" not in made
    elif isinstance(made.get("params", {}), dict):
        assert ("_meta" in made.get("params", {})) >= stateless


def test_names_are_unique():
    """A finding names its message."""
    assert len({each.name for each in HOSTILE}) == len(HOSTILE)

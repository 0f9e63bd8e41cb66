"""The smallest arguments that still show a fault."""

from functools import partial

import pytest
import trio

from noizu_mcp.check.fuzz import fuzz

from .recorded import recorder, schema_of

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
NUMBERS = {"type": "array", "items": NUMBER}
INNER = schema_of({"b": {"type": "boolean"}}, ["b"])
# The schema of the arguments, the arguments that show a fault, and the smallest of them.
CASES = {
    "anything": (schema_of({"a": TEXT, "b": NUMBERS}), lambda args: True, {}),
    "a name": (schema_of({"a": NUMBER, "b": NUMBER}), lambda args: "b" in args, {"b": 0}),
    "a bound": (schema_of({"n": NUMBER}), lambda args: args.get("n", 0) >= 56, {"n": 56}),
    "a low bound": (schema_of({"n": NUMBER}), lambda args: args.get("n", 0) <= -56, {"n": -56}),
    "a fraction": (
        schema_of({"n": {"type": "number"}}),
        lambda args: args.get("n", 0) > 10,
        {"n": 11},
    ),
    "a length": (
        schema_of({"l": NUMBERS}),
        lambda args: len(args.get("l", ())) > 2,
        {"l": [0] * 3},
    ),
    "a letter": (
        schema_of({"t": TEXT}),
        lambda args: max(args.get("t", "") + " ") > "\uffff",
        None,
    ),
    "a part": (
        schema_of({"a": INNER}, ["a"]),
        lambda args: args["a"]["b"],
        {"a": {"b": True}},
    ),
    "a large number": (
        schema_of({"n": {**NUMBER, "minimum": 2**70}}, ["n"]),
        lambda args: args["n"] >= 2**70,
        None,
    ),
    # The number of attempts is limited, as they may be expensive.
    "many attempts": (
        schema_of(
            {"l": {"type": "array", "items": {**NUMBER, "minimum": 999}, "minItems": 20}}, "l"
        ),
        lambda args: len(args["l"]) >= 20,
        None,
    ),
    "null": (schema_of({"n": {"type": "null"}}, ["n"]), lambda args: True, {"n": None}),
}


def crash(shows_fault):
    """Make a tool that fails by a bug for some arguments."""

    def call(args):
        if shows_fault(args):
            raise IndexError("list index out of range")
        return "done"

    return call


@pytest.fixture(scope="module")
def least():
    """Fuzz a tool for each case; return the arguments of its finding."""
    tools = {name: schema for name, (schema, *_) in CASES.items()}
    server, _ = recorder(tools, {name: crash(fault) for name, (_, fault, _) in CASES.items()})
    report = trio.run(partial(fuzz, server, examples=6))
    return {
        each.name: each.case.steps[-1].params["arguments"]
        for each in report.findings
        if each.check == "crash"
    }


@pytest.mark.parametrize("name", CASES)
def test_the_least_arguments(name, least):
    """Irrelevant parts are removed, and bounds are found."""
    _, fault, expected = CASES[name]

    assert fault(least[name])
    assert expected is None or least[name] == expected

"""Both eras have the same result, for any questions of a handler and any answers.

On 2026-07-28 this includes handlers that are run again for each answer.
"""

import json

import pytest
import trio
from hypothesis import assume, given, settings
from hypothesis import strategies as st

ERAS = ("2025-11-25", "2026-07-28")
PATIENCE = 60

WRONG = {
    "elicitation/create": [
        {},
        {"action": "maybe"},
        {"action": "accept", "content": {"name": ""}},
        {"action": "accept", "content": 5},
    ],
    "sampling/createMessage": [{}, {"role": 5}, {"role": "user", "model": "m", "content": 5}],
}
RIGHT = st.sampled_from(["accept", "accept", "accept", "decline", "cancel"])
#: For each question: the number of bad answers first, their kind, and the good one.
ANSWERS = st.lists(st.tuples(st.integers(0, 3), RIGHT), min_size=5, max_size=5)

LEAVES = st.sampled_from(["elicit", "elicit", "url", "sample", "roots", "step", "slow_step"])
LOOPS = st.tuples(st.just("until"), st.lists(st.sampled_from(["decline", "cancel"]), max_size=3))
OPS = st.recursive(
    st.lists(st.one_of(LEAVES, LOOPS), max_size=4),
    lambda ops: st.lists(
        st.one_of(LEAVES, st.tuples(st.just("both"), st.lists(ops, min_size=1, max_size=3))),
        min_size=1,
        max_size=3,
    ),
    max_leaves=6,
)


class Script:
    """A conversation: the operations of the handler, and its answers.

    Names are unique, so that each question identifies its origin.
    """

    def __init__(self, ops, answers):
        self.steps = []
        self.loops = {}
        self._answers = answers
        self._count = 0
        self.ops = [self._op(each) for each in ops]
        loops = sum(map(len, self.loops.values()))
        self.most_rounds = loops + sum(
            1 + answers[n % len(answers)][0] for n in range(self._count + 1)
        )

    def _op(self, op):
        if isinstance(op, tuple) and op[0] == "both":
            return ["both", [[self._op(each) for each in branch] for branch in op[1]]]
        self._count += 1
        name = f"n{self._count}"
        if isinstance(op, tuple):
            self.loops[name] = op[1]
            return ["until", name]
        if op.endswith("step"):
            self.steps.append(name)
        return [op, name]

    def person(self):
        """Return a function that answers: bad answers first, then a good one."""
        given = {}

        def answer(question):
            method, params = question["method"], question["params"]
            if method == "roots/list":
                return {"roots": [{"uri": "file:///w"}]}
            asks = params.get("message") or params["messages"][0]["content"]["text"]
            before = given[asks] = given.get(asks, -1) + 1
            bad, action = self._answers[int(asks[1:]) % len(self._answers)]
            if before < bad and params.get("mode") != "url":
                return WRONG[method][before % len(WRONG[method])]
            if method == "sampling/createMessage":
                content = {"type": "text", "text": f"heard {asks}"}
                return {"role": "assistant", "content": content, "model": "m"}
            if asks in self.loops:
                left = self.loops[asks][before - bad :]
                action = left[0] if left else "accept"
            if action != "accept":
                return {"action": action}
            return {"action": "accept", "content": {"name": f"{asks} at {before}"}}

        return answer


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(ops=OPS, answers=ANSWERS)
@pytest.mark.time_limit(360)
def test_both_eras_give_the_same(ops, answers, served, loaded):
    """The result is the same, and every side effect happens exactly once."""
    asking = loaded("asking")
    script = Script(ops, answers)
    assume(script.most_rounds < 50)

    async def run(revision, server="Asker"):
        async with served(server, revision, 0) as wire:
            wire.capabilities = asking.EVERYTHING
            await wire.start()
            person = asking.Person(wire, script.person())
            with trio.fail_after(PATIENCE):
                result = await person.call("script", {"ops": script.ops})
                done = json.loads(await wire.text("done"))
            assert done == sorted(script.steps)
            asked = {json.dumps(_said(each), sort_keys=True) for each in person.asked}
            return result["content"], result.get("isError"), len(person.asked), asked

    expected = trio.run(run, ERAS[0])
    assert trio.run(run, ERAS[1]) == expected
    assert trio.run(run, ERAS[1], "Replayer") == expected


def _said(question):
    """Return the text of a question; a live elicitation of a URL has an id of its own."""
    params = {k: v for k, v in question["params"].items() if k not in ("elicitationId", "_meta")}
    return [question["method"], params]

"""A client that answers questions, the same way in both eras."""

from collections.abc import Callable
from typing import Any

#: All client capabilities, as every revision spells them.
EVERYTHING = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}
ABLE = {
    "2025-03-26": {"sampling": {}, "roots": {}},
    "2025-06-18": {"elicitation": {}, "sampling": {}, "roots": {}},
    "2025-11-25": EVERYTHING,
    "2026-07-28": EVERYTHING,
}
REFUSED = {"code": -1, "message": "User rejected sampling request"}

#: Answers a question, a mapping with `method` and `params`; returns a result.
Answer = Callable[[dict[str, Any]], Any]


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


class Person:
    """Drives requests to their end and answers questions of the server meanwhile.

    Args:
        wire: The client.
        answer: Returns the answer to a question.

    Attributes:
        rounds: The questions of each round, in order; a live question is a round of its own.
        states: The state of each round of 2026-07-28.
    """

    def __init__(self, wire: Any, answer: Answer) -> None:
        self.wire = wire
        self.rounds: list[list[dict[str, Any]]] = []
        self.states: list[str] = []
        self._answer = answer

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Return all questions, in order."""
        return [question for each in self.rounds for question in each]

    async def request(self, method: str, params: Any = None) -> dict[str, Any]:
        """Send a request; return its final response, the whole message."""
        if not self.wire.stateless:
            return await self._live(await self.wire.begin(method, params))
        more: dict[str, Any] = {}
        while True:
            answer = await self.wire.ask(method, {**(params or {}), **more})
            result = answer.get("result", {})
            if result.get("resultType") != "input_required":
                return answer
            more = self._answers(result)

    def _answers(self, result: dict[str, Any]) -> dict[str, Any]:
        requests = result.get("inputRequests")
        answers = {}
        if requests is not None:
            self.rounds.append(list(requests.values()))
            answers["inputResponses"] = {k: self._answer(each) for k, each in requests.items()}
        self.states.append(result["requestState"])
        return {**answers, "requestState": result["requestState"]}

    async def _live(self, id_: Any) -> dict[str, Any]:
        wire = self.wire
        while True:
            if id_ in wire.answers:
                return wire.answers.pop(id_)
            wire.sort(await wire.receive())
            while any("id" in each for each in wire.notices):
                question = await wire.question()
                self.rounds.append([question])
                await wire.respond(question, result=self._answer(question))

    async def call(self, name: str, args: Any = None) -> dict[str, Any]:
        """Call a tool; return its result without the envelope of its era."""
        answer = await self.request("tools/call", {"name": name, "arguments": args or {}})
        assert "result" in answer, answer
        return self.wire.bare(answer["result"])

    async def text(self, name: str, args: Any = None) -> str:
        """Call a tool; return its one text."""
        (block,) = (await self.call(name, args))["content"]
        return block["text"]

"""Questions as type checkers must see them: the types of answers, and of handlers."""

from collections.abc import Mapping, Sequence
from typing import Any, assert_type

from noizu_mcp import (
    Accept,
    Cancel,
    ClientHandler,
    Context,
    Decline,
    InputRequest,
    InputRequired,
    Root,
    SamplingResult,
    Schema,
    Tool,
)


class Guest(Schema):
    name: str


class Book(Tool):
    async def call(self, args: dict[str, Any], ctx: Context) -> str | InputRequired:
        answer = await ctx.elicit("Who?", Guest)
        assert_type(answer, Accept[Guest] | Decline | Cancel)
        if isinstance(answer, Accept):
            assert_type(answer.content.name, str)
        raw = await ctx.elicit("Sure?", {"type": "object", "properties": {}}, timeout=None)
        assert_type(raw, Accept[Any] | Decline | Cancel)
        opened = await ctx.elicit_url("Sign in", "https://example.com")
        assert_type(opened, Accept[None] | Decline | Cancel)
        said = await ctx.sample(["one", {"role": "user", "content": {}}], max_tokens=5)
        assert_type(said, SamplingResult)
        assert_type(said.text, str)
        assert_type(await ctx.list_roots(), list[Root])
        assert_type(ctx.request_state, str | None)
        assert_type(ctx.attempt, int)
        if ctx.request_state is None:
            return InputRequired({"who": InputRequest("roots/list")}, state="asked")
        return answer.action


class Person(ClientHandler):
    async def handle_elicitation(self, params: Mapping[str, Any]) -> Accept[Any] | Decline | Cancel:
        return Accept(Guest(name="Ada")) if params else Decline()

    async def handle_sampling(self, params: Mapping[str, Any]) -> SamplingResult:
        return SamplingResult(role="assistant", content="text", model="none")

    async def list_roots(self) -> Sequence[Root | str]:
        return [Root("file:///srv"), "file:///var"]

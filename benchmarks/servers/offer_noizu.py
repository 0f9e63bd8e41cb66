"""Resources, prompts, questions and notices, in noizu_mcp."""

import bench_offer

from noizu_mcp import (
    Accept,
    Context,
    InputRequest,
    InputRequired,
    Limits,
    Prompt,
    PromptMessage,
    Resource,
    ResourceTemplate,
    Schema,
    Server,
    Tool,
    argument,
    field,
)


class Note(Resource, uri=bench_offer.NOTE, mime_type=bench_offer.MIME):
    """A note."""

    async def read(self) -> str:
        return bench_offer.NOTED


class Item(ResourceTemplate, uri_template="bench://items/{number}", subscribable=True):
    """One of many."""

    class Arguments(Schema):
        number: int

    async def read(self, uri: str, args: Arguments) -> str:
        return uri


class Write(Prompt):
    """Write a text."""

    class Arguments(Schema):
        topic: str = argument(description=bench_offer.TOPIC)
        style: str = argument(default="plain")

    async def get(self, args: Arguments) -> list[PromptMessage]:
        return [PromptMessage.user(bench_offer.instruct(args.topic, args.style))]


class Count(Schema):
    count: int = field(min=1, max=10)


class Ask(Tool):
    """Ask with `ctx.elicit`."""

    class Input(Schema):
        text: str

    async def call(self, args: Input, ctx: Context) -> str:
        answer = await ctx.elicit(bench_offer.QUESTION, Count)
        if not isinstance(answer, Accept):
            return answer.action
        return bench_offer.served(args.text, answer.content.count)


class Raw(Tool):
    """Ask with `InputRequired`."""

    class Input(Schema):
        text: str

    async def call(self, args: Input, ctx: Context) -> str | InputRequired:
        answer = ctx.input_responses.get(bench_offer.KEY)
        if answer is None:
            params = {"message": bench_offer.QUESTION, "requestedSchema": bench_offer.SCHEMA}
            question = InputRequest("elicitation/create", params)
            return InputRequired({bench_offer.KEY: question}, bench_offer.STATE)
        return bench_offer.served(args.text, answer["content"]["count"])


class Touch(Tool):
    """Change every item."""

    async def call(self, args: Schema, ctx: Context) -> str:
        for uri in URIS:
            ctx.server.notify_resource_updated(uri)
        return "touched"


URIS = bench_offer.uris(bench_offer.asked())


class Bench(Server, name=bench_offer.NAME, version="1", limits=Limits(subscriptions=len(URIS) + 1)):
    tools = [Ask, Raw, Touch]
    resources = [Note, Item]
    prompts = [Write]


if __name__ == "__main__":
    Bench().run()

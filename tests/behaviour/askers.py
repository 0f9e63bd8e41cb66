"""A server whose handlers ask: its tools, a resource, a template and a prompt."""

import json
from enum import Enum
from typing import Literal

import trio

from noizu_mcp import (
    Accept,
    Context,
    InputRequest,
    InputRequired,
    McpError,
    Prompt,
    PromptMessage,
    RequestTimeout,
    Resource,
    ResourceTemplate,
    SamplingResult,
    Schema,
    Toolkit,
    field,
    mcp,
)


class Color(Enum):
    """A choice without titles."""

    RED = "red"
    BLUE = "blue"


class Name(Schema):
    """One text."""

    name: str = field(min_length=1)


class Form(Schema):
    """Everything that every form has."""

    name: str = field(title="Your name", description="As in the passport", min_length=1)
    mail: str = field(format="email")
    age: int = field(min=0, max=150)
    share: float = field(default=0.5)
    agree: bool = field(default=True)
    color: Color = Color.BLUE
    size: Literal["s", "m"] = "m"
    note: str | None = None


class Tags(Schema):
    """A choice of several."""

    tags: list[Color] = field(min=1)


class Inner(Schema):
    """A value that no form can nest."""

    x: int


class Nested(Schema):
    """A question that no form can ask."""

    inner: Inner


TITLED = {
    "type": "object",
    "properties": {
        "level": {
            "type": "string",
            "oneOf": [{"const": "1", "title": "Low"}, {"const": "2", "title": "High"}],
        }
    },
    "required": ["level"],
}
NAMES = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SCRIPT = {"type": "object", "properties": {"ops": {"type": "array"}}, "required": ["ops"]}


LEVELS = {
    **TITLED,
    "properties": {**TITLED["properties"], "age": {"type": "integer", "default": 5}},
}
SEVERAL = {
    "type": "object",
    "properties": {"tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}},
}


def by_hand(name, schema=NAMES):
    """Make a question like a handler that asks by hand."""
    return InputRequest("elicitation/create", {"message": name, "requestedSchema": schema})


def described(answer):
    """Describe an answer as JSON."""
    if isinstance(answer, Accept):
        content = answer.content
        return ["accept", content if content is None else content.name]
    return [answer.action]


class Questions(Toolkit):
    """Every kind of question."""

    def __init__(self):
        self.effects = []
        self._runs = 0
        self._outcomes = []
        self._done = trio.Event()

    # Kinds of questions

    @mcp
    async def name(self, args, ctx: Context):
        answer = await ctx.elicit("Who are you?", Name)
        return " ".join(map(str, described(answer)))

    @mcp
    async def form(self, args, ctx: Context):
        answer = await ctx.elicit("All of it", Form)
        content = answer.content
        return json.dumps([getattr(content, name) for name in Form.__annotations__], default=str)

    @mcp
    async def titled(self, args, ctx: Context):
        return (await ctx.elicit("How loud?", TITLED)).content["level"]

    @mcp
    async def tags(self, args, ctx: Context):
        return ",".join(tag.value for tag in (await ctx.elicit("Which?", Tags)).content.tags)

    @mcp
    async def nested(self, args, ctx: Context):
        return str(await ctx.elicit("Which?", Nested))

    @mcp
    async def url(self, args, ctx: Context):
        answer = await ctx.elicit_url("Please log in", "https://example.com/login")
        return f"{answer.action} {getattr(answer, 'content', '')}"

    @mcp
    async def sample(self, args, ctx: Context):
        said = await ctx.sample("Say something", max_tokens=10)
        return f"{said.role} {said.model} {said.stop_reason} {said.text}"

    @mcp
    async def sample_all(self, args, ctx: Context):
        said = await ctx.sample(
            [
                "one",
                PromptMessage.assistant("two"),
                SamplingResult(role="assistant", content="three", model="m"),
                {"role": "user", "content": {"type": "text", "text": "four"}},
            ],
            max_tokens=7,
            system_prompt="Be brief.",
            temperature=0.5,
            model_preferences={"hints": [{"name": "small"}]},
            stop_sequences=("END",),
            metadata={"k": 1},
        )
        return said.text

    @mcp
    async def sample_tools(self, args, ctx: Context):
        said = await ctx.sample(
            "Use the tool",
            max_tokens=10,
            tools=[{"name": "add", "inputSchema": {"type": "object"}}],
            tool_choice={"mode": "required"},
        )
        return f"{said.content[0].type} {said.stop_reason}"

    @mcp
    async def roots(self, args, ctx: Context):
        return " ".join(f"{root.uri}={root.name}" for root in await ctx.list_roots())

    # Whole conversations

    @mcp(input_schema=SCRIPT)
    async def script(self, args, ctx: Context):
        """Do what the arguments say; the result tells all that came of it."""
        return {"told": await self._run(args["ops"], ctx)}

    async def _run(self, ops, ctx):
        told = []
        for op, what in ops:
            told.append(await self._do(op, what, ctx))
        return told

    async def _do(self, op, what, ctx):
        if op == "elicit":
            return described(await ctx.elicit(what, Name))
        if op == "url":
            return described(await ctx.elicit_url(what, "https://example.com"))
        if op == "sample":
            return (await ctx.sample(what, max_tokens=5)).text
        if op == "roots":
            return [root.uri for root in await ctx.list_roots()]
        return await getattr(self, f"_{op}")(what, ctx)

    async def _step(self, what, ctx):
        return await ctx.step(self.effect, what)

    async def _slow_step(self, what, ctx):
        return await ctx.step(self.slow_effect, what)

    async def _until(self, what, ctx):
        """Ask in a loop, until a question is accepted."""
        rounds = 0
        while not isinstance(await ctx.elicit(what, Name), Accept):
            rounds += 1
        return rounds

    async def _both(self, what, ctx):
        """Run several scripts at once."""
        told = {}

        async def branch(index, ops):
            told[index] = await self._run(ops, ctx)

        async with trio.open_nursery() as nursery:
            for index, ops in enumerate(what):
                nursery.start_soon(branch, index, ops)
        return [told[index] for index in range(len(what))]

    def effect(self, name):
        self.effects.append(name)
        return {"did": name, "times": self.effects.count(name)}

    async def slow_effect(self, name):
        self.effects.append(name)  # a started step counts, even if its end never comes
        await trio.sleep(0.01)
        return ["slow", name]

    @mcp(inline=True)
    def done(self):
        return json.dumps(sorted(self.effects))

    @mcp
    async def withdrawn(self, args, ctx: Context):
        """Ask, and go on before anyone can answer."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ctx.elicit, "Never mind", Name)
            for _ in range(3):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        return "never mind"

    # By hand

    @mcp
    async def hand(self, args, ctx: Context):
        given = ctx.input_responses
        if "who" not in given:
            return InputRequired({"who": by_hand("who"), "where": InputRequest("roots/list")}, "st")
        roots = [root["uri"] for root in given["where"]["roots"]]
        return f"{given['who']['content']['name']} {roots} {ctx.request_state}"

    @mcp
    async def form_by_hand(self, args, ctx: Context):
        if "q" not in ctx.input_responses:
            form = SEVERAL if args.get("several") else LEVELS
            return InputRequired({"q": by_hand("q", form)})
        answer = ctx.input_responses["q"]
        return f"{answer['action']} {answer['content']['level']}"

    @mcp
    def hand_in_thread(self, args, ctx: Context):
        given = ctx.input_responses
        return given["q"]["action"] if given else InputRequired({"q": by_hand("q")})

    @mcp
    async def count(self, args, ctx: Context):
        """Come back three times, with nothing but a state."""
        turn = int(ctx.request_state or 0)
        return InputRequired(state=str(turn + 1)) if turn < 3 else f"turn {turn}"

    @mcp
    async def circle(self, args, ctx: Context):
        return InputRequired(state="again")

    @mcp
    async def mixed(self, args, ctx: Context):
        """Ask in both ways; each question is asked once, the step done once."""
        first = await ctx.elicit("first", Name)
        did = await ctx.step(self.effect, first.content.name)
        if "q" not in ctx.input_responses:
            return InputRequired({"q": by_hand("second")}, "kept")
        third = await ctx.elicit("third", Name)
        names = first.content.name, ctx.input_responses["q"]["content"]["name"], third.content.name
        return f"{' '.join(names)} {ctx.request_state} {did}"

    @mcp
    async def hand_sampling(self, args, ctx: Context):
        choice = {"messages": [], "maxTokens": 1, "toolChoice": {"mode": "none"}}
        return InputRequired({"s": InputRequest("sampling/createMessage", choice)})

    @mcp
    def hand_without_context(self):
        return InputRequired(state="lost")

    # Wrong ones

    @mcp
    async def forgetful(self, args, ctx: Context):
        """Ask something else each time."""
        self._runs += 1
        return described(await ctx.elicit(f"Question {self._runs}", Name))

    @mcp
    async def forever(self, args, ctx: Context):
        while True:
            await ctx.elicit("More?", Name)

    @mcp
    async def big(self, args, ctx: Context):
        await ctx.step(self._much)
        await ctx.elicit("And?", Name)

    def _much(self):
        return "x" * 100_000

    @mcp
    async def bad_step(self, args, ctx: Context):
        try:
            await ctx.step(self.effect, object())
        except TypeError as error:
            first = str(error)
        try:
            await ctx.step(object)
        except TypeError as error:
            return f"{first} | {error}"

    @mcp
    async def let_on(self, args, ctx: Context):
        """Clean up, and let the refusal go on."""
        try:
            return (await ctx.sample("Say something", max_tokens=10)).text
        except McpError:
            self.effects.append("cleaned up")
            raise

    @mcp
    async def on_purpose(self, args, ctx: Context):
        """Answer a refusal with an error of its own."""
        try:
            return (await ctx.sample("Say something", max_tokens=10)).text
        except McpError as error:
            raise McpError(4001, "no sample, no answer", {"why": error.message}) from None

    @mcp
    async def handled(self, args, ctx: Context):
        """Go on when the client refuses."""
        try:
            return (await ctx.sample("Say something", max_tokens=10)).text
        except McpError as error:
            return f"{error.code} {error.message}"

    # Time

    @mcp(timeout=0.1)
    async def patient(self, args, ctx: Context):
        """Has little time of its own, and much for a person."""
        await ctx.elicit("Take your time", Name)
        await ctx.elicit("Again", Name)
        await trio.sleep_forever()

    @mcp
    async def impatient(self, args, ctx: Context):
        """Asks live, for a moment; goes on without an answer."""
        try:
            await ctx.elicit("Quick!", Name, timeout=0.02)
        except RequestTimeout:
            return "went on"

    @mcp
    async def gives_up(self, args, ctx: Context):
        return described(await ctx.elicit("Quick!", Name, timeout=0.02))

    @mcp
    async def watched(self, args, ctx: Context):
        """Ask, and say what became of it."""
        outcome = "cancelled"
        try:
            await ctx.elicit("Still there?", Name)
            outcome = "answered"
        finally:
            self._outcomes.append(outcome)
            self._done.set()

    @mcp
    async def outcomes(self):
        await self._done.wait()
        return " ".join(self._outcomes)


class Asked(Resource, uri="ask://one", mime_type="text/plain"):
    """A resource that asks."""

    async def read(self, uri, ctx):
        return f"{uri} {described(await ctx.elicit('Which one?', Name))}"


class AskedFor(ResourceTemplate, uri_template="ask://many/{what}"):
    """A template that asks, by hand."""

    async def read(self, uri, args, ctx):
        if not ctx.input_responses:
            return InputRequired({"q": by_hand(args.what)})
        return ctx.input_responses["q"]["content"]["name"]


class Impatient(Resource, uri="ask://quick"):
    """A resource that gives up."""

    async def read(self, uri, ctx):
        await ctx.elicit("Quick!", Name, timeout=0.02)


class Forgetful(ResourceTemplate, uri_template="forget://{how}"):
    """Asks something else each time, or carries too much."""

    def __init__(self):
        self._runs = 0

    async def read(self, uri, args, ctx):
        self._runs += 1
        if args.how == "much":
            await ctx.step(self._much)
        await ctx.elicit(f"Question {self._runs}", Name)

    def _much(self):
        return "x" * 100_000


class AskedPrompt(Prompt, name="asked"):
    """A prompt that asks."""

    class Arguments(Schema):
        by_hand: str | None = None

    async def get(self, args, ctx):
        if args.by_hand is None:
            return str(described(await ctx.elicit("Who is it for?", Name)))
        if not ctx.input_responses:
            form = SEVERAL if args.by_hand == "several" else NAMES
            return InputRequired({"q": by_hand("prompt", form)})
        return ctx.input_responses["q"]["content"]["name"]

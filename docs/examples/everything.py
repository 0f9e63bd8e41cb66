"""A server with every feature that a client can use: the fixture of the MCP conformance suite.

The suite calls tools, prompts and resources by the names here. Handlers that ask the client come in
two forms. With `ctx.elicit`, `ctx.sample` and `ctx.list_roots`, a handler awaits the answer, on
every revision. A handler that returns `InputRequired` is run again, with the answers in
`ctx.input_responses`; it chooses the keys and checks the answers itself.

Try it:

    noizu-mcp list --all docs/examples/everything.py
    noizu-mcp call docs/examples/everything.py test_input_required_result_multi_round
    noizu-mcp read docs/examples/everything.py test://template/123/data
    noizu-mcp prompt docs/examples/everything.py test_prompt_with_arguments arg1=a arg2=b
    noizu-mcp read docs/examples/everything.py skill://release-notes/SKILL.md
"""

import base64
import json
from typing import Annotated, Any, Literal

import trio

from noizu_mcp import (
    Accept,
    Content,
    Context,
    InputRequest,
    InputRequired,
    McpError,
    Prompt,
    PromptMessage,
    Resource,
    ResourceContents,
    ResourceTemplate,
    Schema,
    Server,
    SkillFolder,
    Tool,
    ToolError,
    Toolkit,
    argument,
    field,
    mcp,
)
from noizu_mcp import fields as f

#: Seconds between two messages of a slow tool.
PAUSE = 0.05
#: One red pixel, and one sample of silence.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
WAV = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==")


class Answers(Toolkit):
    """The kinds of content that a tool can return."""

    @mcp
    async def test_simple_text(self) -> str:
        """Answer with a text."""
        return "This is a simple text response for testing."

    @mcp
    async def test_image_content(self) -> Content:
        """Answer with an image."""
        return Content.image(PNG, "image/png")

    @mcp
    async def test_audio_content(self) -> Content:
        """Answer with a recording."""
        return Content.audio(WAV, "audio/wav")

    @mcp
    async def test_embedded_resource(self) -> Content:
        """Answer with a resource."""
        text = "This is an embedded resource content."
        contents = ResourceContents("test://embedded-resource", "text/plain", text=text)
        return Content.resource(contents)

    @mcp
    async def test_multiple_content_types(self) -> list[Content]:
        """Answer with a text, an image and a resource."""
        data = json.dumps({"test": "data", "value": 123})
        resource = ResourceContents("test://mixed-content-resource", "application/json", text=data)
        return [
            Content.text("Multiple content types test:"),
            Content.image(PNG, "image/png"),
            Content.resource(resource),
        ]

    @mcp
    async def test_error_handling(self) -> str:
        """Fail, in a way that a model can read."""
        raise ToolError("This tool intentionally returns an error for testing")


class Reports(Toolkit):
    """Messages that a tool can send while it runs."""

    @mcp
    async def test_tool_with_logging(self, args: Any, ctx: Context) -> str:
        """Log three messages."""
        await ctx.info("Tool execution started")
        await trio.sleep(PAUSE)
        await ctx.info("Tool processing data")
        await trio.sleep(PAUSE)
        await ctx.info("Tool execution completed")
        return "Logged three messages"

    @mcp
    async def test_logging_tool(self, args: Any, ctx: Context) -> str:
        """Log one message, for clients that want it."""
        await ctx.info("Only for those who asked")
        return "Logged one message"

    @mcp
    async def test_tool_with_progress(self, args: Any, ctx: Context) -> str:
        """Report progress."""
        for percent in (0, 50, 100):
            await ctx.report_progress(percent, 100, f"{percent} percent")
            await trio.sleep(PAUSE)
        return "Progress reported"

    @mcp
    async def test_reconnection(self, args: Any, ctx: Context) -> str:
        """Answer after a while. Over HTTP the client disconnects meanwhile, and reconnects."""
        await ctx.release_stream(retry_after=PAUSE)
        await trio.sleep(2 * PAUSE)
        return "Reconnection test completed"


class Contact(Schema):
    """A form with two fields."""

    username: str = field(description="User name")
    email: str = field(description="Address")


class Consent(Schema):
    ok: bool


class Profile(Schema):
    """A form with a default for each field."""

    name: str = field(default="John Doe", description="User name")
    age: int = field(default=30, description="Age in years")
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = field(default=True, description="Whether the address was verified")


OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"Value {n}"} for n in (1, 2, 3)]
#: A form as JSON Schema; only a raw schema can have titles in the deprecated `enumNames`.
CHOICES = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}


class Questions(Toolkit):
    """Questions to the client that a tool awaits."""

    @mcp
    async def test_sampling(self, ctx: Context, *, prompt: str) -> str:
        """Ask the client's model."""
        answer = await ctx.sample(prompt, max_tokens=100)
        return f"LLM response: {answer.text}"

    @mcp
    async def test_elicitation(self, ctx: Context, *, message: str) -> str:
        """Ask the user for a name and an address."""
        answer = await ctx.elicit(message, Contact)
        if not isinstance(answer, Accept):
            return f"User response: {answer.action}"
        contact = answer.content
        return f"User response: accept, {contact.username} <{contact.email}>"

    @mcp
    async def test_elicitation_sep1034_defaults(self, args: Any, ctx: Context) -> str:
        """Ask with a form whose fields have defaults."""
        answer = await ctx.elicit("Is this you?", Profile)
        if not isinstance(answer, Accept):
            return f"Elicitation completed: {answer.action}"
        you = answer.content
        return f"Elicitation completed: {you.name}, {you.age}, {you.score:g}, {you.status}"

    @mcp
    async def test_elicitation_sep1330_enums(self, args: Any, ctx: Context) -> str:
        """Ask with a form that has every kind of choice."""
        answer = await ctx.elicit("Choose", CHOICES)
        if not isinstance(answer, Accept):
            return f"Elicitation completed: {answer.action}"
        return f"Elicitation completed: {json.dumps(answer.content)}"

    @mcp
    async def test_missing_capability(self, args: Any, ctx: Context) -> str:
        """Ask the client's model; a client without one gets the error of the protocol."""
        return (await ctx.sample("Are you there?", max_tokens=10)).text

    @mcp
    async def test_streaming_elicitation(self, args: Any, ctx: Context) -> str:
        """Report progress, then ask the user."""
        await ctx.report_progress(1, 2, "about to ask")
        answer = await ctx.elicit("Go on?", Consent)
        return f"User response: {answer.action}"


#: The result of a handler that asks by hand.
Asked = str | InputRequired


def form(message: str, name: str, kind: str = "string") -> InputRequest:
    """Write a question for one field by hand."""
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return InputRequest("elicitation/create", {"message": message, "requestedSchema": schema})


def prompt_of(text: str, max_tokens: int) -> InputRequest:
    """Write a question to the client's model by hand."""
    message = {"role": "user", "content": {"type": "text", "text": text}}
    params = {"messages": [message], "maxTokens": max_tokens}
    return InputRequest("sampling/createMessage", params)


def filled_in(ctx: Context, key: str, name: str, kind: type = str) -> Any:
    """Read the one field of a form; None while there is no valid answer.

    Answers to questions that are asked by hand are not validated: the client may send anything.
    """
    match ctx.input_responses.get(key):
        case {"action": "accept", "content": {**content}}:
            value = content.get(name)
            return value if isinstance(value, kind) else None
        case {"action": "decline" | "cancel"}:
            raise McpError(-1, "The user did not answer")
        case _:
            return None


class Rounds(Toolkit):
    """Questions that a tool asks by hand, in one round or several."""

    @mcp
    async def test_input_required_result_elicitation(self, args: Any, ctx: Context) -> Asked:
        """Ask the user for a name."""
        name = filled_in(ctx, "user_name", "name")
        if name is None:
            return InputRequired({"user_name": form("What is your name?", "name")})
        return f"Hello, {name}!"

    @mcp
    async def test_input_required_result_sampling(self, args: Any, ctx: Context) -> Asked:
        """Ask the client's model."""
        match ctx.input_responses.get("capital_question"):
            case {"content": {"text": str(text)}}:
                return f"The model said: {text}"
            case _:
                question = prompt_of("What is the capital of France?", 100)
                return InputRequired({"capital_question": question})

    @mcp
    async def test_input_required_result_list_roots(self, args: Any, ctx: Context) -> Asked:
        """Ask where the server may work."""
        match ctx.input_responses.get("client_roots"):
            case {"roots": [*roots]}:
                return f"Roots: {', '.join(root['uri'] for root in roots)}"
            case _:
                return InputRequired({"client_roots": InputRequest("roots/list")})

    @mcp
    async def test_input_required_result_request_state(self, args: Any, ctx: Context) -> Asked:
        """Send a state with the question. It comes back unchanged, or the call is refused."""
        if ctx.request_state is None or filled_in(ctx, "confirm", "ok", bool) is None:
            confirm = form("Please confirm", "ok", "boolean")
            return InputRequired({"confirm": confirm}, state="state-ok")
        return f"The state came back: {ctx.request_state}"

    @mcp
    async def test_input_required_result_multiple_inputs(self, args: Any, ctx: Context) -> Asked:
        """Ask the user, the model and the client in one round."""
        questions = {
            "user_name": form("What is your name?", "name"),
            "greeting": prompt_of("Generate a greeting", 50),
            "client_roots": InputRequest("roots/list"),
        }
        if not questions.keys() <= ctx.input_responses.keys():
            return InputRequired(questions, state="asked")
        return f"Answered: {', '.join(questions)}"

    @mcp
    async def test_input_required_result_multi_round(self, args: Any, ctx: Context) -> str:
        """Ask one thing after the other."""
        name = await ctx.elicit("What is your name?", {"name": f.string(required=True)})
        color = await ctx.elicit("And your favorite color?", {"color": f.string(required=True)})
        if not isinstance(name, Accept) or not isinstance(color, Accept):
            return "There is no answer"
        return f"{name.content.name} likes {color.content.color}"

    @mcp
    async def test_input_required_result_tampered_state(self, args: Any, ctx: Context) -> str:
        """Ask for consent. A changed state is refused before the handler runs."""
        answer = await ctx.elicit("Please confirm", Consent)
        return f"User response: {answer.action}"

    @mcp
    async def test_input_required_result_capabilities(self, args: Any, ctx: Context) -> str:
        """Ask with a capability that the client declares."""
        if ctx.client_capabilities.sampling is not None:
            return (await ctx.sample("Say hello", max_tokens=50)).text
        return (await ctx.elicit("Say hello", Consent)).action


class Passing(Tool):
    """A tool that is removed at once."""

    async def call(self) -> str:
        return "Still here"


class PassingPrompt(Prompt):
    """A prompt that is removed at once."""

    async def get(self) -> str:
        return "Still here"


class Changes(Toolkit):
    """Lists that change while the server runs. Listening clients are notified."""

    @mcp
    async def test_trigger_tool_change(self, args: Any, ctx: Context) -> str:
        """Change the list of tools, and change it back."""
        ctx.server.tools.add(Passing)
        ctx.server.tools.remove("passing")
        return "Tools changed"

    @mcp
    async def test_trigger_prompt_change(self, args: Any, ctx: Context) -> str:
        """Change the list of prompts, and change it back."""
        ctx.server.prompts.add(PassingPrompt)
        ctx.server.prompts.remove("passing_prompt")
        return "Prompts changed"


class JsonSchemaTool(Tool, name="json_schema_2020_12_tool"):
    """Take arguments that only JSON Schema can describe."""

    input_schema = """
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
                }
            },
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"}
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {
                "properties": {"contactMethod": {"const": "phone"}},
                "required": ["contactMethod"]
            },
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false
        }
    """

    async def call(self, args: dict[str, Any]) -> str:
        return f"Valid: {json.dumps(args)}"


class HeaderTool(Tool, name="test_x_mcp_header"):
    """Take an argument that clients mirror as an HTTP header, for proxies."""

    class Input(Schema):
        region: str = field(default="anywhere", header="Region", description="Where to run")

    async def call(self, args: Input) -> str:
        return f"Region: {args.region}"


class Jobs(Toolkit):
    """Tools whose calls run as tasks, after the request has its answer.

    For a client that does not support tasks, these handlers run within the request.
    """

    @mcp
    async def greet(self, *, name: str) -> str:
        """Greet somebody, with an immediate answer."""
        return f"Hello, {name}!"

    @mcp(task="optional")
    async def slow_compute(
        self,
        ctx: Context,
        *,
        seconds: Annotated[float, field(min=0, max=3600)],
        label: str = "",
    ) -> str:
        """Compute for some seconds, and report progress each second."""
        for second in range(int(seconds)):
            await ctx.report_progress(second, seconds)
            await trio.sleep(1)
        await trio.sleep(seconds % 1)
        return f"Computed {label} for {seconds:g} s"

    @mcp(task="required")
    async def failing_job(self) -> str:
        """Fail after a second, in a way that a model can read."""
        await trio.sleep(1)
        raise ToolError("This job always fails")

    @mcp(task="optional")
    async def protocol_error_job(self) -> str:
        """Fail with an error of the protocol."""
        raise McpError(-1, "This job ends with an error of the protocol")

    @mcp(task="optional")
    async def confirm_delete(self, ctx: Context, *, filename: str) -> str:
        """Ask the user while the task runs, and wait for the answer."""
        answer = await ctx.elicit(f"Delete {filename}?", {"confirm": f.boolean(required=True)})
        if isinstance(answer, Accept) and answer.content.confirm:
            return f"Deleted {filename}"
        return f"Kept {filename}"

    @mcp(task="optional")
    async def multi_input(self, args: Any, ctx: Context) -> str:
        """Ask two things at the same time."""
        answers: dict[str, str] = {}

        async def ask(kind: str) -> None:
            answer = await ctx.elicit(f"What is the {kind} name?", {"name": f.string()})
            answers[kind] = answer.content.name if isinstance(answer, Accept) else "unknown"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "first")
            nursery.start_soon(ask, "last")
        return f"You are {answers['first']} {answers['last']}"

    @mcp(task="required", starts_task=True)
    async def test_tool_with_task(self, args: Any, ctx: Context) -> Asked:
        """Ask the user within the request, then continue as a task."""
        name = filled_in(ctx, "user_name", "name")
        if name is None:
            return InputRequired({"user_name": form("What is your name?", "name")})
        await ctx.start_task()
        await trio.sleep(PAUSE)
        return f"Hello from the task, {name}!"


class StaticText(Resource, uri="test://static-text", mime_type="text/plain"):
    """A text that never changes."""

    async def read(self) -> str:
        return "This is the content of the static text resource."


class StaticBinary(Resource, uri="test://static-binary", mime_type="image/png"):
    """An image that never changes."""

    async def read(self) -> bytes:
        return PNG


class Watched(Resource, uri="test://watched-resource", mime_type="text/plain", subscribable=True):
    """A text that clients may watch."""

    async def read(self) -> str:
        return "This is the content of the watched resource."


class Record(
    ResourceTemplate, uri_template="test://template/{id}/data", mime_type="application/json"
):
    """A record for every id."""

    class Arguments(Schema):
        id: str

    async def read(self, uri: str, args: Arguments) -> dict[str, Any]:
        return {"id": args.id, "templateTest": True, "data": f"Data for ID: {args.id}"}

    async def complete(self, variable: str, prefix: str) -> list[str]:
        return [known for known in ("123", "124", "200") if known.startswith(prefix)]


class SimplePrompt(Prompt, name="test_simple_prompt"):
    """A prompt without arguments."""

    async def get(self) -> str:
        return "This is a simple prompt for testing."


async def complete_second(prefix: str, ctx: Context) -> list[str]:
    """Complete an argument; the values depend on the argument before it."""
    first = ctx.completion_arguments.get("arg1", "")
    return [word for word in ("testValue2", f"{first}2") if word.startswith(prefix)]


class TwoArguments(Prompt, name="test_prompt_with_arguments"):
    """A prompt with two arguments that can be completed."""

    class Arguments(Schema):
        arg1: str = argument(description="First", complete=["testValue1", "testValue10", "other"])
        arg2: str = argument(description="Second", complete=complete_second)

    async def get(self, args: Arguments) -> str:
        return f"Prompt with arguments: arg1='{args.arg1}', arg2='{args.arg2}'"


class ResourcePrompt(Prompt, name="test_prompt_with_embedded_resource"):
    """A prompt with an embedded resource."""

    class Arguments(Schema):
        resourceUri: str = argument(description="URI of the resource")

    async def get(self, args: Arguments) -> list[PromptMessage]:
        text = "Embedded resource content for testing."
        resource = ResourceContents(args.resourceUri, "text/plain", text=text)
        return [
            PromptMessage.user(Content.resource(resource)),
            PromptMessage.user("Please process the embedded resource above."),
        ]


class ImagePrompt(Prompt, name="test_prompt_with_image"):
    """A prompt with an image."""

    async def get(self) -> list[PromptMessage]:
        return [
            PromptMessage.user(Content.image(PNG, "image/png")),
            PromptMessage.user("Please analyze the image above."),
        ]


class AskingPrompt(Prompt, name="test_input_required_result_prompt"):
    """A prompt that asks the user first."""

    async def get(self, args: Any, ctx: Context) -> Asked:
        context = filled_in(ctx, "user_context", "context")
        if context is None:
            return InputRequired({"user_context": form("What is it about?", "context")})
        return f"Explain this, in the context of {context}."


class Everything(
    Server,
    name="everything",
    version="1.0.0",
    instructions="Call anything: it is all for testing.",
    task_poll_interval=0.1,  # its tasks are short
):
    tools = [Answers, Reports, Questions, Rounds, Changes, Jobs, JsonSchemaTool, HeaderTool]
    resources = [StaticText, StaticBinary, Watched, Record]
    prompts = [SimplePrompt, TwoArguments, ResourcePrompt, ImagePrompt, AskingPrompt]
    skills = [SkillFolder("skills")]


if __name__ == "__main__":
    Everything().run()

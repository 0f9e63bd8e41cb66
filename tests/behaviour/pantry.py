"""A server with resources, templates, prompts and completion, and one with computed ones."""

import threading
from typing import Literal

import trio

from noizu_mcp import (
    Completion,
    Content,
    ContentAnnotations,
    Context,
    Icon,
    McpError,
    Prompt,
    PromptMessage,
    PromptResult,
    Resource,
    ResourceContents,
    ResourceNotFound,
    ResourceTemplate,
    Schema,
    Toolkit,
    argument,
    field,
    mcp,
    resource,
)
from noizu_mcp import fields as f
from noizu_mcp.types import Page, ReadResult, ResourceDefinition


class Text(
    Resource,
    uri="pantry://text",
    name="text",
    title="A text",
    mime_type="text/plain",
    size=5,
    annotations=ContentAnnotations(audience=["user"], priority=0.5),
    icons=[Icon("https://example.com/t.png")],
    meta={"example.com/k": 1},
    subscribable=True,
):
    """Five letters."""

    async def read(self, uri, ctx):
        return "hello"


class Blob(Resource, uri="pantry://blob", mime_type="image/png", subscribable=True):
    def read(self):
        assert threading.current_thread() is not threading.main_thread()
        return b"\x89PNG"


class Several(Resource, uri="pantry://several", mime_type="text/plain"):
    async def read(self, uri, ctx):
        contents = ResourceContents("pantry://several/2", "text/csv", text="2", meta={"k": 2})
        return ["1", contents, b"3"]


class Json(Resource, uri="pantry://json"):
    async def read(self, uri, ctx):
        return {"a": [1, None]}


class Hidden(Resource, uri="pantry://hidden", hidden=True, subscribable=True):
    async def read(self, uri, ctx):
        return "found"


class Crash(Resource, uri="pantry://crash"):
    async def read(self, uri, ctx):
        raise RuntimeError("the secret of the author")


class Nothing(Resource, uri="pantry://nothing"):
    async def read(self, uri, ctx):
        return None


class Refuse(Resource, uri="pantry://refuse"):
    def read(self, uri):
        raise McpError(4001, "not today", {"when": "tomorrow"})


class Slow(Resource, uri="pantry://slow", timeout=0.05):
    async def read(self, uri, ctx):
        await trio.sleep_forever()


class Item(ResourceTemplate, uri_template="item://{number}{?unit}", mime_type="text/plain"):
    """One of many."""

    class Arguments(Schema):
        number: int = field(min=1)
        unit: Literal["g", "kg"] | None = None

    async def read(self, uri, args, ctx):
        if args.number > 1000:
            raise ResourceNotFound("item://1000" if args.unit else None)
        return f"{uri} {args.number + 1} {args.unit}"

    async def list(self, ctx):
        return [{"uri": "item://1"}, ResourceDefinition("item://2", "two", title="Two")]

    async def complete(self, variable, prefix, ctx):
        filled = ",".join(f"{k}={v}" for k, v in sorted(ctx.completion_arguments.items()))
        return [f"{variable}:{prefix}:{filled}"]


class File(ResourceTemplate, uri_template="files:///{+path}", subscribable=True):
    def read(self, uri, args):
        return args.path

    def list(self):
        return [{"uri": "files:///a.txt", "name": "a"}]


class Failing(ResourceTemplate, uri_template="fail-async://{x}"):
    def read(self, uri, args):
        return args.x

    async def list(self, ctx):
        raise ValueError("no list today")


class FailingInThread(Failing, uri_template="fail-thread://{x}"):
    def list(self):
        raise SystemExit


class FailingWithError(Failing, uri_template="fail-error://{x}"):
    async def list(self, ctx):
        raise McpError(-32602, "not this one")


class FailingInGroup(Failing, uri_template="fail-group://{x}"):
    async def list(self, ctx):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.lowlevel.checkpoint)
            raise ValueError("no list in a nursery")


class ListingWrong(Failing, uri_template="fail-items://{x}"):
    async def list(self, ctx):
        return ["fail-items://good", {"uri": 5}]


class Withheld(Failing, uri_template="withheld://{x}"):
    async def list(self, ctx):
        ctx.require("admin")


class Mute(ResourceTemplate, uri_template="mute://{x}"):
    def read(self, uri, args):
        return args.x


class Secret(ResourceTemplate, uri_template="secret://{x}", hidden=True, subscribable=True):
    async def read(self, uri, args, ctx):
        return args.x

    async def list(self, ctx):
        return [{"uri": "secret://1"}]


async def languages(prefix, ctx):
    """Complete depending on the other arguments."""
    await trio.lowlevel.checkpoint()
    known = {"web": ["js", "ts"], "data": ["python", "r"]}
    return [x for x in known.get(ctx.completion_arguments.get("field"), []) if x.startswith(prefix)]


class Review(
    Prompt,
    title="Review it",
    icons=[Icon("https://example.com/r.png")],
    meta={"example.com/k": 1},
):
    """Review code."""

    class Arguments(Schema):
        code: str = argument(title="Source", description="The code")
        style: str | None = argument(default=None, complete=["strict", "friendly", "Formal"])
        field: str = argument(default="web")
        language: str | None = argument(default=None, complete=languages)

    async def get(self, args, ctx):
        return [
            PromptMessage.user(f"{args.code} {args.style} {args.field}"),
            PromptMessage.assistant("Fine."),
        ]


class Typed(Prompt):
    class Arguments(Schema):
        count: int = argument(min=1)
        mode: Literal["a", "b"] = "a"
        loud: bool = False

    def get(self, args):
        return f"{args.count + 1} {args.mode} {args.loud}"


class Kinds(Prompt):
    async def get(self):
        text = ResourceContents("file:///a.txt", "text/plain", text="a")
        blob = ResourceContents("file:///b.bin", blob=b"\0")
        return PromptResult(
            [
                PromptMessage.user("text"),
                PromptMessage.user(Content.image(b"\x89PNG", "image/png")),
                PromptMessage.assistant(Content.audio(b"RIFF", "audio/wav")),
                PromptMessage.user(Content.resource(text)),
                PromptMessage.user(Content.resource(blob)),
                PromptMessage.user(Content.resource_link("file:///c", "c", title="See")),
            ],
            description="All kinds",
        )


class Raw(Prompt):
    async def get(self, args, ctx):
        return " ".join(f"{k}={v}" for k, v in sorted(args.items()))


class Hush(Prompt, hidden=True):
    async def get(self):
        return "found"


class CrashPrompt(Prompt):
    async def get(self):
        raise RuntimeError("the secret of the author")


class RefusePrompt(Prompt):
    def get(self):
        raise McpError(4002, "not this one")


class SlowPrompt(Prompt, timeout=0.05):
    async def get(self):
        await trio.sleep_forever()


class Many(Prompt):
    """Completes to more than one answer holds."""

    class Arguments(Schema):
        listed: str = argument(complete=[f"v{number:03}" for number in range(150)])
        dynamic: str = ""
        said: str = ""
        crash: str = ""
        nothing: str = argument(default="", complete=[])

    async def get(self, args, ctx):
        return "many"


class ManyByMethod(Prompt):
    class Arguments(Schema):
        listed: str = argument(default="", complete=["never"])
        said: str = ""
        crash: str = ""
        thread: str = ""

    async def get(self, args, ctx):
        return "many"

    async def complete(self, argument, prefix, ctx):
        if argument == "said":
            return Completion(["one"], total=7, has_more=True)
        if argument == "crash":
            raise RuntimeError("the secret of the author")
        return (f"{prefix}{number}" for number in range(150))


class Touch(Toolkit):
    """Says that something changed."""

    @mcp(input={"uris": f.array(f.string(), required=True)})
    async def touch(self, args, ctx: Context):
        for uri in args.uris:
            ctx.notify.resource_updated(uri)
        return "touched"

    @mcp(input={"uri": f.string(required=True)})
    def touch_in_thread(self, args, ctx: Context):
        ctx.server.notify_resource_updated(args.uri)
        return "touched"

    @mcp
    async def say(self, args, ctx: Context):
        ctx.notify.resources()
        ctx.notify.prompts()
        return "said"

    @mcp
    def restock(self, args, ctx: Context):
        ctx.server.resources.add(resource(Json, uri="pantry://new"), File)
        ctx.server.prompts.remove("raw")
        ctx.server.resources.remove("item://{number}{?unit}")
        ctx.server.resources.replace(resource(Text, title="Another"))
        return "restocked"


class Computed:
    """The overrides of a server that registers nothing."""

    def __init__(self):
        self.watched = []

    async def list_resources(self, cursor, ctx):
        if cursor is None:
            return Page([{"uri": "x://1", "name": "1"}], "next")
        return [ResourceDefinition("x://2", "2")]

    async def list_resource_templates(self, cursor, ctx):
        return [{"uriTemplate": "x://{n}", "name": "n"}]

    async def read_resource(self, uri, ctx):
        if uri == "x://result":
            return ReadResult([ResourceContents(uri, text="whole")])
        return f"read {uri}"

    async def can_watch(self, uri, ctx):
        return uri.startswith("x://")

    async def list_prompts(self, cursor, ctx):
        return [{"name": "p", "arguments": [{"name": "a", "required": True}]}]

    async def get_prompt(self, name, args, ctx):
        return f"got {name} {args.get('a')}"

    async def complete(self, ref, argument, prefix, ctx):
        return [f"{ref.type}:{ref.name or ref.uri}:{argument}:{prefix}"]


class Heard(Toolkit):
    """Says who subscribed."""

    @mcp
    async def heard(self, args, ctx: Context):
        return " ".join(ctx.server.heard)


class Decision:
    """Decides by itself who may watch what, and takes note of it."""

    def __init__(self):
        self.heard = []

    async def can_watch(self, uri, ctx):
        if uri == "x://slow":
            await trio.sleep(0.01)
        return uri.startswith("x://") or uri == "pantry://hidden"

    async def subscribe(self, uri, ctx):
        await super().subscribe(uri, ctx)
        self.heard.append(f"+{uri}")

    async def unsubscribe(self, uri, ctx):
        await super().unsubscribe(uri, ctx)
        self.heard.append(f"-{uri}")

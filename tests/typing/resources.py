"""The public examples of resources, templates and prompts, under a strict type checker."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, assert_type

from noizu_mcp.components import (
    Context,
    Prompt,
    PromptSpec,
    Resource,
    ResourceSpec,
    ResourceTemplate,
    TemplateSpec,
    complete_from,
    expand,
    prompt,
    resource,
    resource_template,
    to_completion,
    to_contents,
    to_prompt_result,
)
from noizu_mcp.schema import Schema, argument
from noizu_mcp.types import (
    Completion,
    Content,
    ContentAnnotations,
    PromptMessage,
    PromptResult,
    ReadResult,
    Reference,
    ResourceContents,
    ResourceDefinition,
    Role,
)
from noizu_mcp.uri import UriTemplate


class AppConfig(Resource, uri="config://app", mime_type="application/json", subscribable=True):
    """Application configuration."""

    async def read(self, uri: str, ctx: Context) -> str:
        return json.dumps({})


class TableSchema(
    ResourceTemplate,
    uri_template="db://{table}/schema",
    annotations=ContentAnnotations(audience=["user"]),
):
    class Arguments(Schema):
        table: str

    async def read(self, uri: str, args: Arguments, ctx: Context) -> ResourceContents:
        assert_type(args.table, str)
        return ResourceContents(uri, text=args.table)

    async def complete(self, variable: str, prefix: str, ctx: Context) -> list[str]:
        return [prefix]

    async def list(self, ctx: Context) -> AsyncIterator[ResourceDefinition]:
        yield ResourceDefinition("db://a/schema", "a")


async def styles(prefix: str, ctx: Context) -> Completion:
    return Completion([prefix], total=1)


class CodeReview(Prompt, title="Review"):
    """Review code for quality issues."""

    class Arguments(Schema):
        code: str = argument(description="The code to review")
        style: str | None = argument(default=None, complete=["strict", "friendly"])
        tone: str = argument(default="dry", complete=styles)

    async def get(self, args: Arguments, ctx: Context) -> list[PromptMessage]:
        assert_type(args.style, str | None)
        return [
            PromptMessage.user(f"Review this code (style: {args.style or 'strict'}):"),
            PromptMessage.assistant(Content.text(args.code)),
        ]


registered = expand(
    [AppConfig, resource(AppConfig(), uri="x:a"), resource_template(TableSchema, hidden=True)],
    "resources",
)
assert_type(registered, list[ResourceSpec | TemplateSpec])
assert_type(expand([CodeReview, prompt(CodeReview, name="x")], "prompts"), list[PromptSpec])
assert_type(AppConfig.definition(), dict[str, Any])

template = UriTemplate("db://{table}{?q}", traversal=True)
assert_type(template.match("db://x"), dict[str, Any] | None)
assert_type(template.expand({"table": 1}), str)
assert_type(template.variables, tuple[str, ...])

assert_type(to_contents(None, "x:a", "x"), list[ResourceContents])
assert_type(to_prompt_result(None, "x"), PromptResult)
assert_type(to_completion(["x"]), Completion)
assert_type(complete_from(["x"], ""), Completion)

message = PromptMessage.user("x")
assert_type(message.role, Role)
assert_type(message.content, Content)
assert_type(message.content.text, str)
assert_type(PromptResult("x").messages, tuple[PromptMessage, ...])
assert_type(ReadResult([]).contents[0].blob, bytes | None)
assert_type(Completion(("x",)).values, tuple[str, ...])
assert_type(Reference.prompt("x"), Reference)
assert_type(Reference.resource("x:{a}").uri, str | None)
assert_type(PromptResult("x").meta, Mapping[str, Any] | None)

# Each of these is wrong, which a checker must report.
resource("AppConfig")  # type: ignore[call-overload]
resource_template(TableSchema, uri="x:a")  # type: ignore[call-arg]
prompt(CodeReview, nmae="x")  # type: ignore[call-overload]
PromptMessage("system", "x")  # type: ignore[arg-type]
UriTemplate("x:{a}", True)  # type: ignore[call-arg]


class Review(Prompt):
    async def get(self, code: str, style: str = argument(default="dry", complete=["dry"])) -> str:
        assert_type(style, str)
        return code


class Rows(ResourceTemplate, uri_template="db://{table}/{number}"):
    def read(self, table: str, number: int, ctx: Context) -> str:
        return f"{table} {number}"


def review(code: str) -> str:
    return code


async def row(table: str, number: int) -> str:
    return f"{table} {number}"


functions = [
    review,
    prompt(review, name="x", arguments={"code": str}),
]
assert_type(expand(functions, "prompts"), list[PromptSpec])
assert_type(
    expand([resource(row, uri="db://{table}/{number}", traversal=True)], "resources"),
    list[ResourceSpec | TemplateSpec],
)
resource(row, url="db://{table}/{number}")  # type: ignore[call-overload]

"""Prompts: typed arguments, completion, and several messages.

noizu-mcp list --prompts docs/examples/prompts.py
noizu-mcp prompt docs/examples/prompts.py code_review code='x = 1' style=strict
noizu-mcp complete docs/examples/prompts.py translate dialect a --context language=English
"""

from collections.abc import Sequence
from typing import Literal

from noizu_mcp import Context, Prompt, PromptMessage, Schema, Server, argument

DIALECTS = {"English": ["American", "Australian", "British"], "German": ["Austrian", "Swiss"]}


async def dialects(prefix: str, ctx: Context) -> Sequence[str]:
    """Complete a dialect of the language that is already filled in."""
    known = DIALECTS.get(ctx.completion_arguments.get("language", ""), [])
    return [name for name in known if name.lower().startswith(prefix.lower())]


class CodeReview(Prompt):
    """Review code for quality issues."""

    class Arguments(Schema):
        code: str = argument(description="The code to review")
        style: Literal["strict", "friendly"] = argument(default="strict")
        limit: int = argument(default=5, description="Maximum number of remarks")

    def get(self, args: Arguments) -> Sequence[PromptMessage]:
        return [
            PromptMessage.user(f"Review this code, at most {args.limit} remarks:\n{args.code}"),
            PromptMessage.assistant(f"Here is a {args.style} review:"),
        ]


class Translate(Prompt, title="Translate a text"):
    """Translate a text into a dialect."""

    class Arguments(Schema):
        text: str
        language: str = argument(complete=[*DIALECTS])
        dialect: str | None = argument(default=None, complete=dialects)

    def get(self, args: Arguments) -> str:
        return f"Translate into {args.dialect or 'plain'} {args.language}: {args.text}"


class Prompts(Server, name="prompts", version="1.0.0"):
    prompts = [CodeReview, Translate]

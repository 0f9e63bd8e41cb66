"""Workflows: files of TOML whose steps run skills. They are data, and run no code of their own."""

import json
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import attrs
import trio

from noizu_mcp import Context, McpError, ToolError, ToolProvider, tool
from noizu_mcp.schema import compile_schema

from .folder import Folder
from .settings import Settings, hide
from .skills import PREFIX as SKILL
from .skills import Skills

PREFIX = "workflow:"
END = "end"
#: Runs that are kept.
MAX_RUNS = 1000


_TEXT = {"type": "string", "minLength": 1, "maxLength": 100}
_STEP = {
    "type": "object",
    "properties": {
        "name": {**_TEXT, "pattern": r"^\w+$"},
        "skill": _TEXT,
        "arguments": {"type": "object"},
        "routes": {"type": "object", "additionalProperties": _TEXT},
    },
    "required": ["name", "skill"],
    "additionalProperties": False,
}
SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "name": _TEXT,
            "description": {"type": "string"},
            "enabled": {"type": "boolean"},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 3600},
            "steps": {"type": "array", "items": _STEP, "minItems": 1, "maxItems": 50},
        },
        "required": ["name", "steps"],
        "additionalProperties": False,
    }
)


@attrs.frozen
class Step:
    """A step of a workflow.

    Attributes:
        name: Its name.
        skill: The name of the skill that it runs.
        arguments: The arguments of the skill. `$input` in the place of a value stands for the input
            of the workflow, `$last` for the result of the step before, and the name of a step after
            `$` for its result.
        routes: The next step for each branch, or `end`; the following one for any other branch.
    """

    name: str
    skill: str
    arguments: dict[str, Any] = attrs.Factory(dict[str, Any])
    routes: dict[str, str] = attrs.Factory(dict[str, str])


@attrs.frozen
class Workflow:
    """A workflow, as its file describes it; it may take `timeout` seconds."""

    name: str
    steps: list[Step]
    description: str | None = None
    enabled: bool = True
    timeout: float = 60.0

    @property
    def branches(self) -> list[str]:
        """The branches that its steps may take."""
        return list(dict.fromkeys(branch for step in self.steps for branch in step.routes))


def read_workflow(content: bytes) -> Workflow:
    """Read and check a workflow.

    Raises:
        ValueError: It is malformed.
    """
    found = tomllib.loads(content.decode())
    # Dates and infinities are TOML, and not JSON: clients read the arguments of the steps.
    json.dumps(found, allow_nan=False)
    if violations := SCHEMA.violations(found):
        raise ValueError("; ".join(str(each) for each in violations))
    steps = [Step(**step) for step in found.pop("steps")]
    names = [step.name for step in steps]
    for at, step in enumerate(steps):
        used = {each[1:] for each in step.arguments.values() if _is_reference(each)}
        if wrong := used - {"input", "last", *names[:at]}:
            raise ValueError(f"step {step.name}: nothing is called {', '.join(sorted(wrong))}")
        # Forward only, so that every run ends.
        if wrong := set(step.routes.values()) - {*names[at + 1 :], END}:
            raise ValueError(f"step {step.name}: no later step {', '.join(sorted(wrong))}")
    if len({*names, "input", "last", END}) < len(names) + 3:
        raise ValueError("each step needs a name of its own, other than input, last and end")
    return Workflow(steps=steps, **found)


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("$")


@attrs.define
class Run:
    """One run of a workflow; `status` is `running`, `done` or `failed`."""

    id: int
    workflow: str
    input: str
    status: str = "running"
    steps: list[str] = attrs.Factory(list[str])
    result: Any = None


class Runs:
    """The last runs."""

    def __init__(self) -> None:
        self.kept: deque[Run] = deque(maxlen=MAX_RUNS)
        self._count = 0

    def begin(self, workflow: str, text: str) -> Run:
        """Note that a run begins."""
        self._count += 1
        self.kept.append(run := Run(self._count, workflow, text))
        return run


class Workflows(ToolProvider, shared=True):
    """The workflows of a folder, as tools.

    Args:
        path: The folder.
        skills: The skills that steps run.
        settings: The settings.
    """

    def __init__(self, path: Path, skills: Skills, settings: Settings) -> None:
        self._skills = skills
        self._settings = settings
        self._folder = Folder(path, "*.toml", self._load)
        self.runs = Runs()

    async def tools(self, ctx: Context) -> Iterable[Any]:
        loaded = await trio.to_thread.run_sync(self._folder.load, abandon_on_cancel=True)
        return [registration for workflow, registration in loaded if workflow.enabled]

    async def watch(self, changed: Callable[[], None]) -> None:
        await self._folder.watch(changed)

    def unknown(self, name: str) -> str | None:
        if name.startswith(PREFIX):
            return f"Unknown workflow: {name.removeprefix(PREFIX)}"
        return None

    def count(self) -> int:
        """Count the tools. It blocks."""
        return sum(workflow.enabled for workflow, _ in self._folder.load())

    async def describe(self) -> list[dict[str, Any]]:
        """Describe all workflows as JSON, also disabled ones, without secrets."""
        loaded = await trio.to_thread.run_sync(self._folder.load, abandon_on_cancel=True)
        return [_described(number, workflow) for number, (workflow, _) in enumerate(loaded, 1)]

    def _load(self, _: Path, content: bytes) -> tuple[Workflow, Any]:
        workflow = read_workflow(content)
        branches = workflow.branches
        self._settings.check_published(json.dumps([workflow.name, *branches]))
        text = "The input of the first step."
        if branches:
            text += f" Possible output branches: {', '.join(branches)}."

        async def run(args: Mapping[str, Any], ctx: Context) -> dict[str, Any]:
            return await self._run(workflow, args.get("input", ""), ctx)

        registration = tool(
            run,
            name=PREFIX + workflow.name,
            description=self._settings.redact(
                workflow.description or f"Run the {workflow.name} workflow"
            ),
            input_schema={
                "type": "object",
                "properties": {"input": {"type": "string", "default": "", "description": text}},
            },
            output_schema={
                "type": "object",
                "properties": {
                    "run": {"type": "integer"},
                    "steps": {"type": "array", "items": {"type": "string"}},
                    "branch": {"enum": [*branches, None]},
                    "result": {},
                },
                "required": ["run", "steps", "branch", "result"],
            },
            timeout=workflow.timeout,
            task="optional",
        )
        return workflow, registration

    async def _run(self, workflow: Workflow, text: str, ctx: Context) -> dict[str, Any]:
        run = self.runs.begin(workflow.name, self._settings.redact(text))
        values: dict[str, Any] = {"input": text, "last": text}
        branch: str | None = None
        try:
            steps = {step.name: step for step in workflow.steps}
            following = dict(zip(steps, [*list(steps)[1:], END], strict=True))
            at = workflow.steps[0].name
            while at != END:
                step = steps[at]
                await ctx.report_progress(len(run.steps), len(steps), at)
                value, branch = await self._run_step(step, values, ctx)
                values[at] = values["last"] = value
                run.steps.append(at)
                at = step.routes.get(branch or "", following[at])
        except BaseException:
            run.status = "failed"  # also when the client cancelled it, or the time was over
            raise
        run.status, run.result = "done", self._settings.redact(values["last"])
        taken = branch if branch in workflow.branches else None
        return {"run": run.id, "steps": run.steps, "branch": taken, "result": values["last"]}

    async def _run_step(
        self, step: Step, values: Mapping[str, Any], ctx: Context
    ) -> tuple[Any, str | None]:
        """Run the skill of a step; return its result and its branch.

        Raises:
            ToolError: The skill failed, was denied, or does not exist.
        """
        arguments = {
            name: values[value[1:]] if _is_reference(value) else value
            for name, value in step.arguments.items()
        }
        # The skill, and the tools that it declares; nothing else, whatever its code tries.
        allowed = (SKILL + step.skill, *self._skills.calls_of(step.skill))
        narrow = ctx.capability.attenuate(tools=allowed)
        try:
            result = await ctx.call_tool(SKILL + step.skill, arguments, capability=narrow)
        except McpError as error:
            raise ToolError(f"step {step.name}: {error.message}") from error
        if result.is_error:
            raise ToolError(f"step {step.name}: {result.text}")
        value: Any = result.structured if result.has_structured else result.text
        parts = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        return parts.get("result", value), parts.get("branch")


def _described(number: int, workflow: Workflow) -> dict[str, Any]:
    steps = [
        {
            "position": position,
            "name": step.name,
            "skill": step.skill,
            "arguments": hide(step.arguments),
            "routes": step.routes,
        }
        for position, step in enumerate(workflow.steps, 1)
    ]
    return {
        "id": number,
        "name": workflow.name,
        "description": workflow.description,
        "enabled": workflow.enabled,
        "steps": steps,
    }

"""Skills: files of Python whose function `run` is a tool."""

import functools
import inspect
import linecache
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import attrs
import trio

from noizu_mcp import Context, ToolError, ToolProvider, ToolResult, tool

from .folder import Folder
from .settings import Settings

PREFIX = "skill:"


class Work:
    """The hands of a skill: all that it can reach beside its arguments.

    Args:
        ctx: The request.
        settings: The settings.
        calls: The tools that the skill may call.
    """

    def __init__(self, ctx: Context, settings: Settings, calls: tuple[str, ...]) -> None:
        self._ctx = ctx
        self._settings = settings
        self._calls = calls

    def setting(self, key: str, default: Any = None) -> Any:
        """Return a setting; a secret one is a `Secret`."""
        return self._settings.values.get(key, default)

    async def log(self, text: str) -> None:
        """Send a log message to the client."""
        await self._ctx.info(self._settings.redact(text))

    async def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report progress to the client."""
        await self._ctx.report_progress(done, total, self._settings.redact(text))

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        """Call a tool that the skill declares in `CALLS`.

        Raises:
            ToolError: It failed, or may not be called.
        """
        if not self._calls:
            raise ToolError(f"this skill declares no CALLS, so it may not call {name}")
        # The call may be inside of another one, which allows less than the skill declares.
        narrow = self._ctx.capability.attenuate(tools=self._calls)
        result = await self._ctx.call_tool(name, arguments, capability=narrow)
        if result.is_error:
            raise ToolError(f"{name}: {result.text}")
        return result


@attrs.frozen
class Skill:
    """A skill, as its file was loaded.

    Attributes:
        name: The name of the file without `.py`.
        calls: The tools that it may call.
        registration: The tool.
    """

    name: str
    calls: tuple[str, ...]
    registration: Any


class Skills(ToolProvider, shared=True):
    """Skills as tools: skills of the program, and skills of a folder.

    Args:
        path: The folder. Its files are run as a part of this program: whoever may write there may
            do all that the program may do.
        settings: The settings.
        own: Functions of the program itself that are skills, too; they call no tools.
    """

    def __init__(
        self, path: Path, settings: Settings, own: Iterable[Callable[..., Any]] = ()
    ) -> None:
        self._settings = settings
        self._own = [tool(each, name=PREFIX + each.__name__) for each in own]
        self._folder = Folder(path, "*.py", self._load)
        self.loaded: dict[str, Skill] = {}

    async def tools(self, ctx: Context) -> Iterable[Any]:
        # In a thread: the code of a file runs when it is loaded.
        loaded = await trio.to_thread.run_sync(self._folder.load, abandon_on_cancel=True)
        self.loaded = {skill.name: skill for skill in loaded}
        return [*self._own, *(skill.registration for skill in loaded)]

    async def watch(self, changed: Callable[[], None]) -> None:
        await self._folder.watch(changed)

    def unknown(self, name: str) -> str | None:
        return f"Unknown skill: {name.removeprefix(PREFIX)}" if name.startswith(PREFIX) else None

    def count(self) -> int:
        """Count the tools. It blocks."""
        return len(self._own) + len(self._folder.load())

    def calls_of(self, name: str) -> tuple[str, ...]:
        """Return the tools that a skill may call; skills of this package call none."""
        return self.loaded[name].calls if name in self.loaded else ()

    def _load(self, path: Path, content: bytes) -> Skill:
        # A default or a docstring may be published.
        self._settings.check_published(path.stem + content.decode(errors="replace"))
        module = ModuleType(f"{__package__}.loaded.{path.stem}")
        module.__file__ = str(path)
        # Not by an import: a module would be kept, and its bytecode be found by the time of the
        # file, which two changes in a moment share.
        code = compile(content, path, "exec")
        try:
            exec(code, vars(module))
        except BaseException as error:
            # Also `sys.exit()`: it must end neither this thread nor the server.
            raise ValueError(f"its code raised {type(error).__name__}: {error}") from error
        linecache.checkcache(str(path))
        run, calls = vars(module).get("run"), vars(module).get("CALLS", ())
        if run is None:
            raise ValueError("it has no function `run`")
        if not isinstance(calls, list | tuple):
            # The letters of a text would be patterns.
            raise ValueError("CALLS must be a list of the names of tools")  # noqa: TRY004
        calls = tuple(cast("list[str]", calls))
        about = inspect.getdoc(run) or f"{path.stem} skill"
        registration = tool(
            _with_work(run, self._settings, calls),
            name=PREFIX + path.stem,
            description=self._settings.redact(f"{about}{_branches(run)} [dynamic]"),
            timeout=vars(module).get("TIMEOUT"),
        )
        return Skill(path.stem, calls, registration)


def _with_work(
    run: Callable[..., Any], settings: Settings, calls: tuple[str, ...]
) -> Callable[..., Any]:
    """Make the function that gives `run` its `work`, if it takes that."""
    signature = inspect.signature(run)
    if any(
        each.name == "ctx" or each.annotation is Context for each in signature.parameters.values()
    ):
        # It could call every tool of the server, and send secrets.
        raise ValueError("a skill takes `work`, and not the context")
    if "work" not in signature.parameters:
        return run
    if not inspect.iscoroutinefunction(run):
        raise ValueError("a skill that takes `work` is an `async def run`")

    @functools.wraps(run)
    async def call(*args: Any, ctx: Context, **arguments: Any) -> Any:
        return await run(*args, **arguments, work=Work(ctx, settings, calls))

    # The schema is made of this signature.
    shown = [each for each in signature.parameters.values() if each.name != "work"]
    ctx = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=Context)
    vars(call)["__signature__"] = signature.replace(parameters=[*shown, ctx])
    return call


def _branches(run: Callable[..., Any]) -> str:
    """Tell the branches of a skill: the choices of the field `branch` of its result."""
    result = inspect.signature(run).return_annotation
    hint = getattr(result, "__annotations__", {}).get("branch")
    branches: tuple[str, ...] = getattr(hint, "__args__", ())
    return f" Possible output branches: {', '.join(branches)}." if branches else ""

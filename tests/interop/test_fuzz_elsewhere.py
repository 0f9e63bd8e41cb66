"""The fuzzer finds faults of servers on other packages, and known faults of public servers."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from noizu_mcp import Stdio
from noizu_mcp.check.fuzz import Report, fuzz

from ..checks.fuzz.faults import ASTRAL, FAULTS, least_steps, say
from .conftest import need_mcp
from .test_public_servers import command_of

SEEDED = Path(__file__).parents[1] / "checks" / "fuzz"
#: Seconds for a run; a busy machine takes longer to start a server many times.
BUDGET = 300.0
#: If set, every fault is searched for on each package, which takes minutes; else a few of each
#: kind.
ALL = "NOIZU_MCP_ALL_FAULTS"

#: What the official Python package imports to serve on stdio; a run starts a server many times.
ON_STDIO = ("mcp.server.stdio", "anyio._backends._asyncio")
#: Faults of tools on the upper level of the official Python package, which checks arguments.
UPPER = {
    "crash": ("crash", [say("")]),
    "leak": ("leak", [say("")]),
    "hang": ("silence", [say(ASTRAL)]),
    "exit": ("crash", [say("\0")]),
    "bound": ("crash", [{"name": "pick", "arguments": {"index": 10}}]),
    "sequence": (
        "crash",
        [
            {"name": name, "arguments": {"title": ""}}
            for name in ("keep_note", "drop_note", "read_note")
        ],
    ),
}
#: Faults on its lower level, which leaves all to the author.
LOWER = ("max-items", "enum", "output", "twice", "eras", "order", "cursors", "cancel", "notice")
#: Faults on version 2 of the official TypeScript package.
TYPESCRIPT = ("crash", "leak", "hang", "exit", "bound", "sequence", *LOWER)
#: Known faults of public servers: the check and the component.
PUBLIC = {
    "time": {
        ("leak", "get_current_time"),
        ("leak", "convert_time"),
        ("protocol", "half a surrogate pair in params"),
    },
    "memory": {("protocol", "cursor that is a number")},
}


def some(names: Iterable[str], *chosen: str) -> list[Any]:
    skip = pytest.mark.skipif(ALL not in os.environ, reason=f"{ALL} is not set")
    return [name if name in chosen else pytest.param(name, marks=skip) for name in names]


async def run(target: Stdio, fault: str) -> Report:
    return await fuzz(target, examples=8 if fault == "output" else 4, timeout=2.0, budget=BUDGET)


@pytest.mark.parametrize("fault", some(UPPER, "crash"))
async def test_a_fault_of_a_server_of_the_official_package(
    fault: str, forked_command: Callable[..., list[str]]
) -> None:
    """A fault in a tool is found behind the checks of the package, and reduced."""
    need_mcp()
    check, params = UPPER[fault]

    words = forked_command(str(SEEDED / "seeded_mcp.py"), "mcp.server.mcpserver", *ON_STDIO)
    report = await run(Stdio(*words, fault), fault)

    assert params in least_steps(report, check)


@pytest.mark.parametrize("fault", some(LOWER, "enum"))
async def test_a_fault_on_the_lower_level_of_the_official_package(
    fault: str, forked_command: Callable[..., list[str]]
) -> None:
    """A fault in an author's own code is found and reduced."""
    need_mcp()
    check, params = FAULTS[fault]

    words = forked_command(str(SEEDED / "seeded_mcp_low.py"), "mcp.server.lowlevel", *ON_STDIO)
    report = await run(Stdio(*words, fault), fault)

    assert params in least_steps(report, check)


@pytest.mark.parametrize("fault", some(TYPESCRIPT, "eras"))
async def test_a_fault_of_a_server_in_typescript(
    fault: str, node_command: Callable[[str, str], tuple[list[str], dict[str, str]]]
) -> None:
    """A fault of a server in another language is found, too."""
    words, env = node_command("seeded.mjs", "@modelcontextprotocol/server")
    check, params = FAULTS[fault]

    report = await run(Stdio(*words, fault, env=env), fault)

    assert params in least_steps(report, check)


@pytest.mark.parametrize("name", some(PUBLIC, "memory"))
async def test_what_is_found_in_a_public_server(
    name: str, tmp_path: Path, node_package: Callable[[str], Path]
) -> None:
    """The run finds the documented faults, and no other fault of a tool."""
    target = command_of(name, tmp_path, node_package)

    report = await fuzz(target, examples=4, timeout=2.0, budget=BUDGET)

    found = {(each.check, each.name) for each in report.findings if each.check != "revisions"}
    assert report.is_complete
    # The drawn values decide which of the tools shows a fault that both have.
    assert found <= PUBLIC[name]
    assert {check for check, _ in found} == {check for check, _ in PUBLIC[name]}

"""The fuzzer finds the faults of servers on other packages, and what is known of public servers."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from noizu_mcp import Stdio
from noizu_mcp.testing.fuzz import Report, fuzz

from ..testing.fuzz.faults import ASTRAL, FAULTS, least_steps, say
from .conftest import need_mcp

SEEDED = Path(__file__).parents[1] / "testing" / "fuzz"
#: Seconds for a run; a busy machine takes longer to start a server many times.
BUDGET = 300.0
ATTEMPTS = 4

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


async def run(target: Stdio, fault: str) -> Report:
    return await fuzz(target, examples=8 if fault == "output" else 4, timeout=2.0, budget=BUDGET)


@pytest.mark.parametrize("fault", UPPER)
async def test_a_fault_of_a_server_of_the_official_package(fault: str) -> None:
    """A fault in a tool is found behind the checks of the package, and made small."""
    need_mcp()
    check, params = UPPER[fault]

    report = await run(Stdio(sys.executable, str(SEEDED / "seeded_mcp.py"), fault), fault)

    assert params in least_steps(report, check)


@pytest.mark.parametrize("fault", LOWER)
async def test_a_fault_on_the_lower_level_of_the_official_package(fault: str) -> None:
    """A fault in what the author does by hand is found and made small."""
    need_mcp()
    check, params = FAULTS[fault]

    report = await run(Stdio(sys.executable, str(SEEDED / "seeded_mcp_low.py"), fault), fault)

    assert params in least_steps(report, check)


@pytest.mark.parametrize("fault", TYPESCRIPT)
async def test_a_fault_of_a_server_in_typescript(
    fault: str, node_command: Callable[[str, str], tuple[list[str], dict[str, str]]]
) -> None:
    """A server in another language is no different."""
    words, env = node_command("seeded.mjs", "@modelcontextprotocol/server")
    check, params = FAULTS[fault]

    report = await run(Stdio(*words, fault, env=env), fault)

    assert params in least_steps(report, check)

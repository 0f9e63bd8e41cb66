"""The fuzzer finds nothing in the servers of the documentation."""

from pathlib import Path

import pytest

from noizu_mcp.check.fuzz import fuzz
from noizu_mcp.testing import serve_over

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
TARGETS = (
    "asking.py",
    "baskets.py",
    "dynamic.py:Notes",
    "dynamic.py:Plugins",
    "gated.py",
    "library.py",
    "prompts.py",
    "pydantic_shop.py",
    "raw_schema.py",
    "resources.py",
    "search.py",
    "toolkit.py",
    "upstream.py",
    "weather.py",
)
#: Those that have most kinds of components; the others are fuzzed in the slow tests.
QUICK = ("library.py", "resources.py")
#: One of each kind: starting a process takes longer than all of its answers.
PROCESSES = ("dynamic.py:Plugins", "library.py", "prompts.py", "resources.py", "everything.py")


def found(report):
    return [each.to_json() for each in report.findings]


async def fuzz_in_memory(name, **options):
    async with serve_over(str(EXAMPLES / name), "memory") as server:
        return await fuzz(server, destructive=True, **options)


def test_every_example_is_here():
    """The list contains every example."""
    named = {each.partition(":")[0] for each in TARGETS}

    # `fastapi_app.py` is served by an application; `tests/docs/test_application.py` fuzzes it. The
    # last two have the tools of other servers.
    elsewhere = {"everything.py", "fastapi_app.py", "gateway.py", "petstore.py"}
    assert named | elsewhere == {each.name for each in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[] if each in QUICK else pytest.mark.slow) for each in TARGETS],
)
async def test_an_example(name):
    """Every answer of the server is valid, in both eras, in memory."""
    report = await fuzz_in_memory(name, examples=3)

    assert found(report) == []
    assert report.is_complete


@pytest.mark.slow
async def test_everything(autojump_clock):
    """The server with every feature has no finding; its slow tools take no real time."""
    report = await fuzz_in_memory("everything.py", examples=1, budget=600.0)

    assert found(report) == []
    assert report.is_complete


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSES[:-1])
async def test_an_example_over_http(name):
    """Every answer is valid over HTTP."""
    async with serve_over(str(EXAMPLES / name), "http") as url:
        report = await fuzz(url, examples=2)

    assert found(report) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.time_limit(360)
async def test_an_example_as_a_process(name):
    """Every answer is valid over stdio, in separate processes."""
    report = await fuzz(str(EXAMPLES / name), examples=1 if name == "everything.py" else 2)

    assert found(report) == []

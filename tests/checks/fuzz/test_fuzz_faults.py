"""`fuzz` with servers that have one fault each: it is found, reduced, and replayed."""

import sys
from pathlib import Path

import pytest

from noizu_mcp import Schema, Server, Stdio, Tool
from noizu_mcp.check.fuzz import Finding, fuzz, replay

from .faults import FAULTS, least_steps, say

HERE = Path(__file__).parent


def command(fault):
    # Without the site packages a script without imports starts quickly.
    return Stdio(sys.executable, "-S", "-E", str(HERE / "seeded.py"), fault)


def check_findings(report, fault):
    check, params = FAULTS[fault]
    assert params in least_steps(report, check)
    assert all(each.steady for each in report.findings)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_found_and_made_small(fault, in_process, autojump_clock):
    """A run of the default duration finds the fault, with the smallest steps that show it."""
    report = await fuzz(fault, examples=8 if fault == "output" else 4)

    check_findings(report, fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["exit", "twice", "cancel", "fragile"])
async def test_a_fault_of_a_process_is_found(fault):
    """A process that exits, hangs or writes at any time is found, too."""
    report = await fuzz(command(fault), examples=4, timeout=1.0)

    check_findings(report, fault)


@pytest.mark.parametrize("fault", ["crash", pytest.param("sequence", marks=pytest.mark.slow)])
async def test_a_finding_is_shown_again_until_it_is_mended(fault):
    """`replay` fails with the check while the server has the fault, and passes afterwards."""
    report = await fuzz(command(fault), examples=4, timeout=1.0)
    (finding,) = [each for each in report.findings if each.check == "crash"]
    kept = finding.to_json()

    with pytest.raises(AssertionError, match="a deliberate error"):
        await replay(command(fault), kept)
    await replay(command("none"), kept)
    assert Finding.from_json(kept) == finding


async def test_nothing_is_found_in_a_server_without_a_fault(in_process, autojump_clock):
    """Every call is answered as specified, so nothing is reported."""
    report = await fuzz("none", examples=20)

    assert [each.to_json() for each in report.findings] == []
    assert report.is_complete


async def test_a_seed_makes_the_same_findings(in_process, autojump_clock):
    """Two runs with the same seed have equal reports."""
    first, second = [await fuzz("crash", seed=7, examples=4) for _ in "ab"]

    assert first.to_json()["findings"] == second.to_json()["findings"]


class Stats(Tool):
    """Split a text into words; an empty one is the fault."""

    class Output(Schema):
        words: list[str]

    # Not in a thread: the clock of a test would jump beyond its timeout meanwhile.
    async def call(self, text: str) -> Output:
        return {"words": text.split() if text else None}


class Splitting(Server, name="splitting", version="1"):
    tools = [Stats]


async def test_a_broken_output_contract_of_this_package(autojump_clock):
    """The server reports the value instead of sending it; the tool did not raise this error."""
    report = await fuzz(Splitting, examples=4)

    assert [{"name": "stats", "arguments": {"text": ""}}] in least_steps(report, "output")
    assert {each.check for each in report.findings} == {"output"}


@pytest.fixture
def of_this_package(forked_command):
    """Return the command of a server of this package with a fault, which a run starts often."""
    modules = ("noizu_mcp", "noizu_mcp.transports", "jsonschema_rs")
    words = forked_command(str(HERE / "seeded_noizu.py"), *modules)
    return lambda fault: Stdio(*words, fault)


#: The same for a server of this package, which checks arguments and results itself.
OURS = {
    "crash": ("crash", [say("")]),
    "leak": ("leak", [say("")]),
    "bound": ("crash", [{"name": "pick", "arguments": {"index": 10}}]),
    "eras": ("eras", [{"name": "pick", "arguments": {"index": 6}}]),
    "sequence": (
        "crash",
        [
            {"name": name, "arguments": {"title": ""}}
            for name in ("keep_note", "drop_note", "read_note")
        ],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", OURS)
async def test_a_fault_of_a_server_of_this_package(fault, of_this_package):
    """An author's fault is found behind the checks of the package, and reduced."""
    check, params = OURS[fault]

    report = await fuzz(of_this_package(fault), examples=6, timeout=1.0)

    assert params in least_steps(report, check)


@pytest.mark.slow
async def test_nothing_is_found_in_a_server_of_this_package(of_this_package):
    """A server without a fault has no finding."""
    report = await fuzz(of_this_package("none"), examples=6)

    assert [each.to_json() for each in report.findings] == []

"""`fuzz` against servers with one fault each: it is found, made small, and shown again."""

import sys
from pathlib import Path

import pytest

from noizu_mcp import Schema, Server, Stdio, Tool
from noizu_mcp.check.fuzz import Finding, fuzz, replay

from .faults import FAULTS, least_steps, say

HERE = Path(__file__).parent


def command(fault):
    # Without the site packages a script that imports nothing starts in no time.
    return Stdio(sys.executable, "-S", "-E", str(HERE / "seeded.py"), fault)


def check_findings(report, fault):
    check, params = FAULTS[fault]
    assert params in least_steps(report, check)
    assert all(each.steady for each in report.findings)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_found_and_made_small(fault, in_process, autojump_clock):
    """A run within the default time finds the fault, with the least steps that show it."""
    report = await fuzz(fault, examples=8 if fault == "output" else 4)

    check_findings(report, fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["exit", "twice", "cancel", "fragile"])
async def test_a_fault_of_a_process_is_found(fault):
    """A process that ends, hangs or writes at any time is no different."""
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
    """Every call is answered as the specification says, so nothing is reported."""
    report = await fuzz("none", examples=20)

    assert [each.to_json() for each in report.findings] == []
    assert report.is_complete


async def test_a_seed_makes_the_same_findings(in_process, autojump_clock):
    """Two runs with the same seed report the same."""
    first, second = [await fuzz("crash", seed=7, examples=4) for _ in "ab"]

    assert first.to_json()["findings"] == second.to_json()["findings"]


class Stats(Tool):
    """Split a text into words; an empty one is the fault."""

    class Output(Schema):
        words: list[str]

    # In no thread: the clock of a test would jump past its timeout meanwhile.
    async def call(self, text: str) -> Output:
        return {"words": text.split() if text else None}


class Splitting(Server, name="splitting", version="1"):
    tools = [Stats]


async def test_a_broken_output_contract_of_this_package(autojump_clock):
    """The server does not send the value, and says so; that is no error which the tool chose."""
    report = await fuzz(Splitting, examples=4)

    assert [{"name": "stats", "arguments": {"text": ""}}] in least_steps(report, "output")
    assert {each.check for each in report.findings} == {"output"}


@pytest.fixture
def of_this_package(forked_command):
    """Give the command of a server of this package with a fault: a run starts it many times."""
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
    """The fault of an author is found behind the checks of the package, and made small."""
    check, params = OURS[fault]

    report = await fuzz(of_this_package(fault), examples=6, timeout=1.0)

    assert params in least_steps(report, check)


@pytest.mark.slow
async def test_nothing_is_found_in_a_server_of_this_package(of_this_package):
    """A server without a fault has no finding."""
    report = await fuzz(of_this_package("none"), examples=6)

    assert [each.to_json() for each in report.findings] == []

"""The report of a run: facts and findings, as text, as JSON, and as tests."""

import json
import pprint
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from ..._files import through_no_link
from ..._value import JSONObject
from ...transports import Http, Stdio
from ._case import Finding
from ._checks import CHECKS
from ._fuzzed_server import FuzzTarget

#: Maximum characters of a received value in a line.
MAX_SHOWN = 300


@attrs.define
class Report:
    """The findings and facts of a run.

    Attributes:
        target: The server, as given by the caller.
        seed: The seed.
        facts: The known facts about the server and the run, by name.
        findings: The findings, in order.
        skipped: The tools that were not called, since they may destroy something.
        unannotated: The tools that were called without annotations about destruction.
        unusable: The components for whose schema no values can be drawn.
        slow: The names of the components that were called less often, because they are slow.
        unreached: The names of the components for which there was no time.
        is_complete: False if the time ended before all examples were tried.
    """

    target: FuzzTarget
    seed: int
    facts: dict[str, str] = attrs.field(factory=dict)
    findings: list[Finding] = attrs.field(factory=list)
    skipped: list[str] = attrs.field(factory=list)
    unannotated: list[str] = attrs.field(factory=list)
    unusable: list[str] = attrs.field(factory=list)
    slow: dict[str, None] = attrs.field(factory=dict)
    unreached: list[str] = attrs.field(factory=list)
    is_complete: bool = False

    def to_json(self) -> JSONObject:
        """Return the report for programs."""
        return {
            "facts": self.facts,
            "seed": self.seed,
            "complete": self.is_complete,
            "findings": [
                {**each.to_json(), "rule": CHECKS[each.check].sentence, "test": self.test_of(each)}
                for each in self.sorted()
            ],
            "skipped": self.skipped,
            "unannotated": self.unannotated,
            "unusable": self.unusable,
            "slow": list(self.slow),
            "unreached": self.unreached,
        }

    def sorted(self) -> list[Finding]:
        """Return the findings in the order of the checks."""
        order = list(CHECKS)
        return sorted(self.findings, key=lambda each: (order.index(each.check), each.name))

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report for people, with a test for each finding."""
        width = max(map(len, self.facts), default=0)
        for name, fact in self.facts.items():
            yield f"{name:{width}}  {fact}"
        for text, names in (
            ("not called, they may destroy something (--destructive calls them)", self.skipped),
            ("called, though no annotation tells what they change", self.unannotated),
            ("not tried, nothing can be drawn from their schemas", self.unusable),
            ("called less often, they take long", list(self.slow)),
            ("not called, the time was over (--budget gives more)", self.unreached),
        ):
            if names:
                yield f"{text}: {', '.join(names)}"
        for each in self.sorted():
            yield ""
            yield f"{each.check.upper()}  {each.kind} {each.name}"
            yield f"  rule  {CHECKS[each.check].sentence} ({CHECKS[each.check].source})"
            for step in each.case.steps:
                yield f"  sent  {_shorten(json.dumps(step.to_json(), ensure_ascii=False))}"
            yield f"  seen  {_shorten(each.seen)}"
            if not each.steady:
                yield "        (once; the same steps did not show it again)"
            yield ""
            yield from (f"    {line}" for line in self.test_of(each).splitlines())
        yield ""
        many = "1 finding" if len(self.findings) == 1 else f"{len(self.findings)} findings"
        yield many if self.is_complete else f"{many}; the time was over before the examples were"

    def test_of(self, finding: Finding) -> str:
        """Write a finding as a test that fails until it is fixed."""
        return test_of(finding, self.target)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 1]}…"


def test_of(finding: Finding, target: FuzzTarget) -> str:
    """Write a finding as a pytest test.

    Args:
        finding: The finding.
        target: The server.

    Returns:
        The source of a module with one test.
    """
    words = re.findall(r"[a-z0-9]+", f"{finding.name} {finding.check}".lower())
    imports = "from noizu_mcp.check.fuzz import replay"
    shown = repr(target)
    if isinstance(target, Stdio):
        imports = f"from noizu_mcp import Stdio\n{imports}"
        shown = f"Stdio({', '.join(map(repr, (target.command, *target.args)))})"
    elif isinstance(target, Http):
        imports = f"from noizu_mcp import Http\n{imports}"
        shown = f"Http({target.url!r})"
    elif not isinstance(target, str):
        kind = target if isinstance(target, type) else type(target)
        imports, shown = (
            f"from {kind.__module__} import {kind.__qualname__}\n{imports}",
            kind.__qualname__,
        )
    kept = finding.to_json()
    del kept["steady"]
    value = pprint.pformat(kept, width=88, sort_dicts=False)
    value = value.replace("\n", "\n    ")
    return (
        f"import trio\n\n{imports}\n\n\n"
        f"def test_{'_'.join(words)}():\n"
        f'    """{CHECKS[finding.check].sentence}"""\n'
        f"    finding = {value}\n"
        f"    trio.run(replay, {shown}, finding)\n"
    )


def load(path: str | Path) -> list[Finding]:
    """Read stored findings.

    Args:
        path: A file of JSON lines; a missing file counts as empty.

    Raises:
        ValueError: A line is not a finding.
    """
    file = Path(path)
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines()
    return [Finding.from_json(json.loads(line)) for line in lines if line.strip()]


def keep(path: str | Path, findings: Iterable[Finding]) -> None:
    """Add findings to a file; equal ones are replaced.

    Args:
        path: A file of JSON lines, made if it does not exist.
        findings: The findings.

    Raises:
        ValueError: A line of the file is not a finding.
        OSError: It cannot be written, or is a link to another file.
    """
    kept = {_key(each): each for each in (*load(path), *findings)}
    text = "".join(f"{json.dumps(each.to_json())}\n" for each in kept.values())
    with open(path, "w", encoding="utf-8", opener=through_no_link) as file:
        file.write(text)


def _key(finding: Finding) -> tuple[str, ...]:
    steps = json.dumps([each.to_json() for each in finding.case.steps])
    return (finding.check, finding.kind, finding.name, steps)

"""The report of a check: facts, rules that hold, and findings; printed for people, or as JSON."""

import json
from collections.abc import Iterator
from typing import Any, Final

import attrs

from ..._value import JSONObject
from .._rules import SEVERITIES, Severity
from ._rules import RULES

#: Longest quotation of what was sent or seen, in characters.
MAX_QUOTED: Final = 200
#: Findings of one rule that are kept: a server that breaks it everywhere needs no longer list.
MAX_SAME: Final = 5


@attrs.frozen
class Finding:
    """A rule that does not hold.

    Attributes:
        rule: Its name.
        sent: What was sent.
        seen: What came back.
        severity: How bad that is.
    """

    rule: str
    sent: str
    seen: str
    severity: Severity


class Report:
    """Collects what the checks find.

    Attributes:
        facts: What is known about the server, by words for it; in order.
        findings: Rules that do not hold.
        checked: The names of the rules that were checked.
    """

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self.findings: list[Finding] = []
        self.checked: set[str] = set()

    def check(
        self, rule: str, holds: object, sent: str, seen: object, severity: Severity | None = None
    ) -> bool:
        """Note the outcome of a check.

        Args:
            rule: The name of the rule.
            holds: True if the server keeps the rule.
            sent: What was sent, in a few words.
            seen: What came back: text, or a JSON value.
            severity: That of the rule unless given.

        Returns:
            `holds` as a bool.
        """
        self.checked.add(rule)
        if holds:
            return True
        found = Finding(rule, sent, quoted(seen), severity or RULES[rule].severity)
        same = [each for each in self.findings if each.rule == rule]
        # One fault is seen again in the other era, and by later requests.
        if len(same) < MAX_SAME and all(each.seen != found.seen for each in same):
            self.findings.append(found)
        return False

    @property
    def failed(self) -> bool:
        """True if there is an error among the findings."""
        return any(each.severity == "error" for each in self.findings)

    def _sorted(self) -> list[Finding]:
        rules = list(RULES)
        return sorted(
            self.findings,
            key=lambda each: (SEVERITIES.index(each.severity), rules.index(each.rule)),
        )

    def to_json(self) -> JSONObject:
        """Return the report for programs."""
        findings = [
            {
                "severity": each.severity,
                "rule": each.rule,
                "sent": each.sent,
                "seen": each.seen,
                "do": RULES[each.rule].remedy,
                "source": RULES[each.rule].source,
            }
            for each in self._sorted()
        ]
        checked = [name for name in RULES if name in self.checked]
        return {"facts": self.facts, "findings": findings, "checked": checked}

    def lines(self) -> Iterator[str]:
        """Write the report for people."""
        width = max(map(len, self.facts), default=0)
        for name, fact in self.facts.items():
            yield f"{name:{width}}  {fact}"
        for each in self._sorted():
            yield ""
            yield f"{each.severity.upper()}  {each.rule}"
            yield f"  sent  {each.sent}"
            yield f"  seen  {each.seen}"
            yield f"  do    {RULES[each.rule].remedy}"
            yield f"        ({RULES[each.rule].source})"
        broken = {each.rule for each in self.findings}
        yield ""
        yield f"{len(self.checked)} rules checked, {len(self.checked - broken)} hold"


def quoted(seen: Any) -> str:
    """Shorten what came back to one line."""
    text = seen if isinstance(seen, str) else json.dumps(seen, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED - 1]}…"

"""The report of a check: facts, rules that hold, and findings; printed as text or as JSON."""

import json
from collections.abc import Iterator
from typing import Final

import attrs

from ..._value import JSON, JSONObject
from .._rules import SEVERITIES, Severity
from ._rules import RULES

#: Maximum characters of a quotation of what was sent or received.
MAX_QUOTED: Final = 200
#: Maximum findings of one rule: a server that breaks it everywhere needs no longer list.
MAX_SAME: Final = 5


@attrs.frozen
class BrokenRule:
    """A rule that the server breaks.

    Attributes:
        rule: Its name.
        sent: What was sent.
        seen: What was received.
        severity: Its severity.
    """

    rule: str
    sent: str
    seen: str
    severity: Severity


class Report:
    """Collects what the checks find.

    Attributes:
        facts: The known facts about the server, by name, in order.
        findings: The rules that the server breaks.
        checked: The names of the rules that were checked.
    """

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self.findings: list[BrokenRule] = []
        self.checked: set[str] = set()

    def check(
        self, rule: str, holds: object, sent: str, seen: object, severity: Severity | None = None
    ) -> bool:
        """Record the result of a check.

        Args:
            rule: The name of the rule.
            holds: True if the server keeps the rule.
            sent: What was sent, briefly.
            seen: What was received: text, or a JSON value.
            severity: The severity; by default that of the rule.

        Returns:
            `holds` as a bool.
        """
        self.checked.add(rule)
        if holds:
            return True
        found = BrokenRule(rule, sent, quoted(seen), severity or RULES[rule].severity)
        same = [each for each in self.findings if each.rule == rule]
        # One fault appears again in the other era, and in later requests.
        if len(same) < MAX_SAME and all(each.seen != found.seen for each in same):
            self.findings.append(found)
        return False

    @property
    def failed(self) -> bool:
        """True if there is an error among the findings."""
        return any(each.severity == "error" for each in self.findings)

    def _sorted(self) -> list[BrokenRule]:
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
        """Yield the lines of the report for people."""
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


def quoted(seen: JSON) -> str:
    """Shorten a received value to one line."""
    text = seen if isinstance(seen, str) else json.dumps(seen, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED - 1]}…"

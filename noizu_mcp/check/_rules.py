"""The rules of `lint` and `doctor`: the severity of each, and how to fix it."""

from typing import Final, Literal, NamedTuple

Severity = Literal["error", "warning", "note"]
#: From worst to mildest.
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")


class Rule(NamedTuple):
    """One rule.

    Attributes:
        severity: `error` if the specification says MUST, or if clients, hosts or APIs fail;
            `warning` if it says SHOULD, if a model has to guess, or if there is a risk; `note` for
            other useful facts.
        remedy: The change that fixes it.
        source: Where the rule comes from: a page of the specification, or another document.
    """

    severity: Severity
    remedy: str
    source: str

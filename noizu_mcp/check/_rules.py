"""The rules of `lint` and `doctor`: how bad it is to break one, and what to do about it."""

from typing import Final, Literal, NamedTuple

Severity = Literal["error", "warning", "note"]
#: From the worst on.
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")


class Rule(NamedTuple):
    """One rule.

    Attributes:
        severity: `error` if the specification says MUST, or if clients, hosts or APIs fail;
            `warning` if it says SHOULD, if a model has to guess, or if there is a risk; `note` for
            other useful facts.
        remedy: The change that mends it.
        source: Where the rule comes from: a page of the specification, or another document.
    """

    severity: Severity
    remedy: str
    source: str

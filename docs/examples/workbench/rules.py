"""Policies in a file, which is read again when it changes."""

import json
import logging
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from noizu_mcp import Context
from noizu_mcp.policies import (
    AllowTools,
    Denied,
    DenyTools,
    Policy,
    PolicyCall,
    RateLimit,
    TimeWindow,
)

from .folder import Folder

logger = logging.getLogger("workbench")


class Closed(Policy):
    """Refuses every call, as long as the file of the policies cannot be read."""

    def check(self, call: PolicyCall, ctx: Context) -> None:
        raise Denied("the policies cannot be read; the log of the server says why")


class MaxDepth(Policy):
    """Refuses calls that are nested too deep.

    Args:
        calls: Tools around a call: 1 lets a workflow run skills that call nothing.
    """

    def __init__(self, calls: int) -> None:
        if type(calls) is not int or calls < 0:
            raise ValueError(f"calls must be 0 or more, got {calls!r}")
        self.calls = calls

    def check(self, call: PolicyCall, ctx: Context) -> None:
        if call.depth > self.calls:
            raise Denied(f"calls may be nested {self.calls} deep here")


def _deny(tools: list[str]) -> Policy:
    return DenyTools(*_listed(tools))


def _allow(tools: list[str]) -> Policy:
    return AllowTools(*_listed(tools))


def _listed(tools: Any) -> list[str]:
    # The letters of a text would be patterns, and `*` fits everything.
    if not isinstance(tools, list):
        raise TypeError(f"tools must be a list of patterns, got {tools!r}")
    return cast("list[str]", tools)


#: The kinds of rules. The other members of a rule are the arguments.
KINDS: dict[str, Callable[..., Policy]] = {
    "deny": _deny,
    "allow": _allow,
    "rate": RateLimit,
    "hours": TimeWindow,
    "depth": MaxDepth,
}


class Rules:
    """The policies in a file.

    Args:
        path: The file, of TOML: a table `[[policy]]` for each, in the order in which they are
            asked.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._kept: dict[str, Policy] = {}
        self._folder = Folder(path.parent, path.name, self._read, keeps=False)

    def load(self) -> list[Policy]:
        """Read the file, and return the policies.

        Without a file that can be read they refuse everything, since the file might
        refuse it.
        """
        for policies in self._folder.load():
            return policies
        logger.warning("every call is denied: %s cannot be used", self._name)
        return [Closed()]

    async def watch(self, changed: Callable[[], object]) -> None:
        """Report changes of the file; see `Folder.watch`."""
        await self._folder.watch(changed)

    def _read(self, _: Path, content: bytes) -> list[Policy]:
        texts = _rules_in(content)
        # A rule that did not change stays the same object: a rate limit goes on counting.
        self._kept = {text: self._kept.get(text) or _policy_of(text) for text in texts}
        return [self._kept[text] for text in texts]


def _rules_in(content: bytes) -> list[str]:
    """Return the rules of a file, each as canonical JSON.

    Raises:
        ValueError: The file is malformed.
    """
    found = tomllib.loads(content.decode())
    # No mistake may be overlooked, such as [[policies]].
    if wrong := found.keys() - {"policy"}:
        raise ValueError(f"there is no {', '.join(sorted(wrong))}; write [[policy]]")
    rules = found.get("policy")
    # An empty file is being written.
    if not isinstance(rules, list):
        raise ValueError("it has no rules; write `policy = []` for none")  # noqa: TRY004
    tables = cast("list[object]", rules)
    if not all(isinstance(table, dict) for table in tables):
        raise ValueError("each rule is a table: [[policy]]")
    return [json.dumps(table, sort_keys=True) for table in tables]


def _policy_of(text: str) -> Policy:
    """Make the policy of a rule.

    Raises:
        ValueError: A value is wrong.
        TypeError: There is an argument too many, or one is missing.
    """
    rule: dict[str, Any] = json.loads(text)
    kind = rule.pop("kind", None)
    if kind not in KINDS:
        raise ValueError(f"no kind of policy {kind!r}; there are: {', '.join(KINDS)}")
    return KINDS[kind](**rule)

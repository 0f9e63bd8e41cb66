"""Sequences: values that one call returned are arguments of the next.

Matches are found by name: a tool with the argument `note_id` gets a `note_id`, or an `id`, seen
before; and arguments of one tool are used for another with an argument of the same name.
"""

import json
import random
from collections import deque
from collections.abc import Iterator
from typing import Final

from ..._util import part_of
from ..._value import JSON, JSONObject
from ._case import Listed, Replies

#: Values of one name that are stored.
MAX_KEPT: Final = 16
#: Maximum characters of a stored value.
MAX_LENGTH: Final = 1000
#: Maximum number of stored names.
MAX_NAMES: Final = 500
#: The share of arguments that are taken from earlier calls.
SHARE: Final = 0.8


class SeenValues:
    """Values by the names under which they were seen."""

    def __init__(self) -> None:
        self._values: dict[str, deque[JSON]] = {}

    def learn(self, component: Listed, outcome: Replies) -> None:
        """Store the arguments and the result of a call that succeeded, and completions."""
        result = outcome.result
        if component.kind == "completion":
            values = part_of(part_of(result, "completion", dict), "values", list)
            self._keep_all([{component.definition["argument"]["name"]: each} for each in values])
            return
        if component.kind != "tool" or result is None or outcome.refused:
            return
        self._keep_all(outcome.step.params.get("arguments"))
        structured = result.get("structuredContent")
        self._keep_all(structured)
        if structured is not None:
            return
        for block in part_of(result, "content", list):
            text = block.get("text") if isinstance(block, dict) else None
            if isinstance(text, str) and text[:1] in "{[":
                try:
                    self._keep_all(json.loads(text))
                except (ValueError, RecursionError):
                    continue

    def _keep_all(self, value: JSON) -> None:
        for name, part in _named(value):
            if name not in self._values and len(self._values) >= MAX_NAMES:
                continue
            kept = self._values.setdefault(name, deque(maxlen=MAX_KEPT))
            if part not in kept:
                kept.append(part)

    def fill(self, component: Listed, value: JSON, chance: random.Random) -> JSON:
        """Replace arguments by values seen before, if the schema allows it.

        Args:
            component: The tool.
            value: Valid arguments.
            chance: The source of randomness.
        """
        if not isinstance(value, dict):
            return value
        filled = dict(value)
        for name in part_of(component.schema, "properties", dict):
            known = [each for alias in _aliases(name) for each in self._values.get(alias, ())]
            if not known or chance.random() > SHARE:
                continue
            # The latest ones are most likely to still exist.
            candidate: JSONObject = {**filled, name: chance.choice(known[-4:])}
            if component.violations(candidate) == []:
                filled = candidate
        return filled


def _aliases(name: str) -> Iterator[str]:
    """Yield the names that match an argument: for `note_id` and `noteId` also `id`."""
    yield name
    if name.endswith(("_id", "Id", "_ids", "Ids")):
        yield "id"
    if name.endswith(("_name", "Name")):
        yield "name"
    if name.endswith("s"):
        yield name[:-1]


def _named(value: JSON, depth: int = 6) -> Iterator[tuple[str, JSON]]:
    """Yield the texts and numbers in a value, with the names of their members."""
    if depth == 0:
        return
    if isinstance(value, list):
        for item in value[:MAX_KEPT]:
            yield from _named(item, depth - 1)
    elif isinstance(value, dict):
        for name, part in value.items():
            if _is_plain(part) or (isinstance(part, list) and all(map(_is_plain, part))):
                yield name, part
            else:
                yield from _named(part, depth - 1)


def _is_plain(value: JSON) -> bool:
    is_scalar = isinstance(value, str | int | float) and not isinstance(value, bool)
    return is_scalar and len(str(value)) < MAX_LENGTH

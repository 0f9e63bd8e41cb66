"""Why a value breaks its schema: every violation at once, in our own words.

Walks schema and value together, after an engine has rejected the value; so it may be slow, but it
is bounded. It serves every engine alike, for schemas that `is_explainable` accepts: all of 2020-12
that can be judged without another document and without remembering what was evaluated.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ._explain_keywords import CHECKS, Found
from ._keywords import Path, walk
from ._refs import Refs, is_local
from ._values import has_type
from ._wording import broken, several_types

# One step is one subschema looked at for one place of the value: about 3 microseconds.
MAX_STEPS = 50_000

Matches = Callable[[str, str], bool]

_UNEXPLAINED = frozenset(
    {
        "unevaluatedItems",
        "unevaluatedProperties",
        "dependencies",
        "$dynamicRef",
        "$dynamicAnchor",
        "$recursiveRef",
        "$vocabulary",
    }
)


class _ExhaustedError(Exception):
    """The walk took more steps than an explanation is worth."""


def is_explainable(schema: Any) -> bool:
    """Tell if every keyword of a valid 2020-12 schema can be followed by `Explainer`."""
    seen: set[int] = set()
    refs = Refs(schema)
    waiting: list[Any] = [schema]
    while waiting:
        for _path, node in walk(waiting.pop()):
            if id(node) in seen:
                continue
            seen.add(id(node))
            if not _UNEXPLAINED.isdisjoint(node) or ("$id" in node and node is not schema):
                return False
            if "$ref" in node:
                if not is_local(node["$ref"]):
                    return False
                waiting.append(refs.find(node["$ref"])[1])
    return True


class Explainer:
    """Finds every violation of a value.

    Args:
        root: The whole schema, to which `$ref` refers.
        matches: Tells if a pattern is found in a text, as the engine does it.
    """

    def __init__(self, root: Any, matches: Matches) -> None:
        self._refs = Refs(root)
        self.matches = matches
        self._steps = 0
        self._active: set[tuple[int, Path]] = set()

    def explain(self, schema: Any, value: Any) -> Found:
        """Return the violations of a value against the root or a subschema of it.

        What is found is certain; it is not all if the value is large beyond reason.
        """
        self._steps = 0
        self._active.clear()
        found: Found = []
        with suppress(_ExhaustedError, RecursionError):
            self.judge(schema, value, (), found)
        unique = {(fault.path, fault.keyword, fault.message): fault for fault in reversed(found)}
        return list(reversed(unique.values()))

    def judge(self, schema: Any, value: Any, path: Path, out: Found) -> None:
        """Add the violations of a subschema to those found."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _ExhaustedError
        if not isinstance(schema, dict):
            if schema is False:
                out.append(broken(path, "false", False, value))
            return
        if "type" in schema and not self._type(schema["type"], value, path, out):
            return
        # A set, for neighbours that are judged together; the places are all different.
        for _place, check in sorted({CHECKS[keyword] for keyword in schema if keyword in CHECKS}):
            check(self, schema, value, path, out)

    def attempt(self, schema: Any, value: Any, path: Path) -> Found:
        """Return the violations of a subschema without reporting them."""
        found: Found = []
        self.judge(schema, value, path, found)
        return found

    def _type(self, wanted: Any, value: Any, path: Path, out: Found) -> bool:
        types = wanted if isinstance(wanted, list) else [wanted]
        if any(has_type(value, name) for name in types):
            return True
        out.append(several_types(path, types, value))
        return False

    def follow(self, ref: str, value: Any, path: Path, out: Found) -> None:
        """Add the violations of the schema that is referred to."""
        target = self._refs.find(ref)[1]
        # A reference that leads back here without descending asks nothing new.
        mark = (id(target), path)
        if mark in self._active:
            return
        self._active.add(mark)
        self.judge(target, value, path, out)
        self._active.discard(mark)

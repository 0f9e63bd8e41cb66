"""Why a value breaks its schema: every violation at once, in our own words.

Walks schema and value together, after an engine has rejected the value; so it may be slow, but it
is bounded. It serves every engine alike, for schemas that `is_explainable` accepts: all of 2020-12
that can be judged without another document and without remembering what was evaluated.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from ..jsonschema._keywords import Path
from ..jsonschema._messages import broken, several_types
from ..jsonschema._refs import Refs, is_local, reachable
from ..jsonschema._values import has_type, identity
from ..jsonschema._violation import Violation
from ._collector import Found, FullError
from ._explain_keywords import CHECKS, Check
from ._subschemas import Compile, Parts

# One step is one subschema looked at for one place of the value: about 3 microseconds. A violation
# takes ten.
MAX_STEPS = 50_000

Matches = Callable[[str, str], bool]

_Part = TypeVar("_Part")

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
    return all(_is_plain(node, schema) for node in reachable(schema, Refs(schema)))


def _is_plain(node: Mapping[str, Any], root: Any) -> bool:
    if not _UNEXPLAINED.isdisjoint(node) or ("$id" in node and node is not root):
        return False
    return "$ref" not in node or is_local(node["$ref"])


class Explainer:
    """Finds every violation of a value; made once for a schema.

    Args:
        root: The whole schema, to which `$ref` refers.
        matches: Tells if a pattern is found in a text, as the engine does it.
        compile_part: Returns an engine's verdict on a schema, or raises ValueError; without it all
            of a value is walked, also what fits.
    """

    def __init__(self, root: Any, matches: Matches, compile_part: Compile | None = None) -> None:
        self.refs = Refs(root)
        self.matches = matches
        self.fits = Parts(root, compile_part).fits if compile_part else _unknown
        self._checks: dict[int, list[Check]] = {}
        self._choices: dict[int, frozenset[Hashable]] = {}

    def explain(self, schema: Any, value: Any) -> list[Violation]:
        """Return the violations of a value against the root or a subschema of it.

        What is found is certain; it is not all if there are more than `MAX_VIOLATIONS`, or if the
        value is large beyond reason.
        """
        walk = _Walk(self)
        found = Found(walk.step)
        with suppress(FullError, _ExhaustedError, RecursionError):
            walk.judge(schema, value, (), found)
        return list(found)

    def choices(self, schema: Mapping[str, Any]) -> Collection[Hashable]:
        """Return the identities of what `enum` of a subschema allows."""
        choices = self._choices.get(id(schema))
        if choices is None:
            choices = self._choices[id(schema)] = frozenset(map(identity, schema["enum"]))
        return choices

    def checks(self, schema: Mapping[str, Any]) -> list[Check]:
        """Return what judges the keywords of a subschema besides `type`, in their order."""
        checks = self._checks.get(id(schema))
        if checks is None:
            # A set, for neighbours that are judged together; the places are all different.
            places = sorted({CHECKS[keyword] for keyword in schema if keyword in CHECKS})
            checks = self._checks[id(schema)] = [check for _place, check in places]
        return checks


def _unknown(_schema: Any, _value: Any) -> bool:
    return False


class _Walk:
    """One explanation: how far it came, and the references that it is behind."""

    def __init__(self, explainer: Explainer) -> None:
        self._explainer = explainer
        self._fits = explainer.fits
        self.matches = explainer.matches
        self.choices = explainer.choices
        self._steps = 0
        self._active: set[tuple[int, Path]] = set()

    def step(self, count: int = 1) -> None:
        """Count work; raises when it is too much."""
        self._steps += count
        if self._steps > MAX_STEPS:
            raise _ExhaustedError

    def each(self, parts: Iterable[_Part]) -> Iterator[_Part]:
        """Yield parts of the value, each of which counts as work."""
        for part in parts:
            self.step()
            yield part

    def judge(self, schema: Any, value: Any, path: Path, out: Found) -> None:
        """Add the violations of a subschema to those found."""
        self.step()
        if not isinstance(schema, dict):
            if schema is False:
                out.append(broken(path, "false", False, value))
            return
        if "type" in schema and not self._type(schema["type"], value, path, out):
            return
        if isinstance(value, (list, dict)) and self._fits(schema, value):
            return
        for check in self._explainer.checks(schema):
            check(self, schema, value, path, out)

    def attempt(self, schema: Any, value: Any, path: Path) -> Found:
        """Return the violations of a subschema without reporting them."""
        found = Found(self.step)
        with suppress(FullError):
            self.judge(schema, value, path, found)
        return found

    def _type(self, wanted: Any, value: Any, path: Path, out: Found) -> bool:
        types = wanted if isinstance(wanted, list) else [wanted]
        for name in types:
            if has_type(value, name):
                return True
        out.append(several_types(path, types, value))
        return False

    def follow(self, ref: str, value: Any, path: Path, out: Found) -> None:
        """Add the violations of the schema that is referred to."""
        target = self._explainer.refs.find(ref)[1]
        # A reference that leads back here without descending asks nothing new.
        mark = (id(target), path)
        if mark in self._active:
            return
        self._active.add(mark)
        try:
            self.judge(target, value, path, out)
        finally:
            self._active.discard(mark)

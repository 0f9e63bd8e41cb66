"""The walk through schema and value, with bounds on its time, that the checks of keywords use.

The time is bounded, since a peer chooses the value. A subschema that is referred to, or that is one
of several alternatives, is judged once for each place of the value, so alternatives that refer back
do not multiply. Each look at a subschema is a step, and the walk ends after `MAX_STEPS`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeVar

import attrs

from ..._pointer import Path
from ..._value import JSONObject
from ..jsonschema._document import REFERENCES, Document
from ..jsonschema._keywords import DIALECTS, LATEST
from ..jsonschema._keywords import walk as walk_schema
from ..jsonschema._values import CompilePart, Verdict, find_not_json, has_type, identity
from ..jsonschema._violation import MAX_VIOLATIONS, Violation
from ._messages import broken, several_types

# One step is one subschema looked at for one place of the value: about 3 microseconds.
MAX_STEPS = 50_000
# A verdict is worth more steps than words: about three seconds.
MAX_JUDGED = 1_000_000
# Levels of a value; deeper JSON is not sent in practice.
_MAX_LEVELS = 1000
# The words for a violation take longer to find.
_STEPS_FOR_WORDS = 10

_ValuePart = TypeVar("_ValuePart")

# The first draft that has a keyword; it means nothing in an older one.
_SINCE: Mapping[str, int] = {
    "const": 6,
    "contains": 6,
    "propertyNames": 6,
    "if": 7,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "$recursiveRef"), 201909),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), 201909),
    **dict.fromkeys(("prefixItems", "$dynamicRef"), 202012),
}


class _FullError(Exception):
    """There is no room for another violation: the list is complete as it is."""


class _ExhaustedError(Exception):
    """The walk took more steps than an explanation is worth."""


class BaseExplainer:
    """Finds every violation of a value; made once for a schema.

    Args:
        document: The schema, to which its references are known.
        compile_pattern: Returns a function that tells if a pattern is found in a text, as the
            engine does it.
        compile_part: Returns an engine's verdict on a part of the schema that refers to nothing in
            it, or raises ValueError. Without it the parts that fit are walked too.
    """

    #: The check of each keyword, and its place in the order of the report.
    table: ClassVar[Mapping[str, tuple[int, str, "KeywordCheck"]]]

    def __init__(
        self,
        document: Document,
        compile_pattern: Callable[[str], Callable[[str], bool]],
        compile_part: CompilePart | None = None,
    ) -> None:
        self.document = document
        self._matcher = cache(compile_pattern)
        self._compile_part = compile_part
        self._verdicts: dict[int, Verdict | None] = {id(document.root): None}
        self._plans: dict[int, tuple[list[str], list[tuple[str, KeywordCheck]]]] = {}
        self._choices: dict[int, frozenset[Hashable]] = {}
        # A dialect of its author's own may assert formats.
        self._draft = int(DIALECTS.get(document.dialect, DIALECTS[LATEST]))
        self._ignored = {name for name, first in _SINCE.items() if first > self._draft}
        if document.dialect in DIALECTS:
            self._ignored.add("format")
        used = {
            keyword for _path, node in document.nodes for keyword in REFERENCES if keyword in node
        }
        #: Whether a part of the value can be met again, and whether it matters on which way: other
        #: documents may have dynamic references too.
        self.refers = bool(used)
        self.is_dynamic = bool(document.documents) or bool(used.intersection(REFERENCES[1:]))
        self.contains_evaluates = self._draft >= 202012

    def explain(self, value: object, schema: object = None) -> list[Violation]:
        """Return the violations of a value against the schema or a subschema of it.

        Each of them is certain. Some are missing if there are more than `MAX_VIOLATIONS`, or if the
        value is large beyond reason.
        """
        current = Walk(self, MAX_STEPS)
        found = ViolationList(current)
        with suppress(_FullError, _ExhaustedError, RecursionError):
            current.judge(self.document.root if schema is None else schema, value, (), found)
        return found.violations

    def judge(self, value: object) -> bool:
        """Tell if a value fits the schema; False too if it is too large or too deep to tell."""
        current = Walk(self, MAX_JUDGED)
        found = ViolationList(current)
        try:
            current.judge(self.document.root, value, (), found)
        except (_FullError, _ExhaustedError, RecursionError):
            return False
        return not found.violations and find_not_json(value, MAX_JUDGED, _MAX_LEVELS) is None

    def matches(self, pattern: str, text: object) -> bool:
        """Tell if a pattern is found in a text; a name that is not text matches no pattern."""
        return isinstance(text, str) and self._matcher(pattern)(text)

    def choices(self, schema: JSONObject) -> frozenset[Hashable]:
        """Return the identities of the values that `enum` of a subschema allows."""
        choices = self._choices.get(id(schema))
        if choices is None:
            choices = self._choices[id(schema)] = frozenset(map(identity, schema["enum"]))
        return choices

    def plan(self, schema: JSONObject) -> tuple[list[str], list[tuple[str, "KeywordCheck"]]]:
        """Return the types that a subschema allows, and its other keywords with their checks."""
        plan = self._plans.get(id(schema))
        if plan is None:
            # Up to draft 7 all that stands beside a reference is ignored.
            keywords = {"$ref"} if "$ref" in schema and self._draft <= 7 else schema.keys()
            # A set, for neighbours that are judged together; the places are all different.
            places = sorted(
                {
                    self.table[keyword]
                    for keyword in keywords - self._ignored
                    if keyword in self.table
                }
            )
            types = schema["type"] if "type" in keywords else []
            plan = self._plans[id(schema)] = (
                types if isinstance(types, list) else [types],
                [(keyword, check) for _place, keyword, check in places],
            )
        return plan

    def fits(self, schema: JSONObject, value: object) -> bool:
        """Tell if the engine accepts a value for a subschema; False too if it cannot tell."""
        if id(schema) not in self._verdicts:
            self._verdicts[id(schema)] = self._verdict(schema)
        verdict = self._verdicts[id(schema)]
        return verdict is not None and verdict(value)

    def _verdict(self, schema: JSONObject) -> Verdict | None:
        # A reference means something else, or nothing, outside of the whole schema.
        if any(keyword in node for _path, node in walk_schema(schema) for keyword in REFERENCES):
            return None
        # A part that only a reference reaches may have keywords with invalid values.
        with suppress(ValueError):
            return self._compile_part(schema) if self._compile_part else None
        return None

    def accepts(self, keyword: str, wanted: str, value: object) -> bool:
        """Tell if the engine accepts a value for one keyword; True if it cannot tell."""
        # A reference may lead to a part that only the whole schema has.
        with suppress(ValueError):
            verdict = self._compile_part({keyword: wanted}) if self._compile_part else None
            return verdict is None or verdict(value)
        return True


class Part(NamedTuple):
    """A part of the value, and the subschema that judges it.

    Attributes:
        node: The subschema.
        value: The part.
        path: Its place in the value.
    """

    node: JSONObject
    value: Any
    path: Path


@attrs.define(eq=False)
class ViolationList:
    """The violations of one value, or of one alternative for it: each once, up to the limit.

    Attributes:
        walk: The explanation that looks for them; it counts the steps for each.
        violations: The violations so far.
    """

    walk: "Walk"
    violations: list[Violation] = attrs.field(factory=list)
    _known: set[tuple[Path, str, str]] = attrs.field(factory=set)

    def add(self, violation: Violation) -> None:
        """Add a violation that is not known yet; raises `_FullError` if there is no room."""
        self.merge((violation,), _STEPS_FOR_WORDS)

    def add_broken(self, keyword: str, part: Part) -> None:
        """Add the violation of a keyword that judges one value by itself."""
        self.add(broken(part.path, keyword, part.node[keyword], part.value))

    def merge(self, violations: Iterable[Violation], steps: int = 1) -> None:
        """Add violations whose words were found before."""
        for violation in violations:
            self.walk.step(steps)
            key = (violation.path, violation.keyword, violation.message)
            if key not in self._known:
                if len(self.violations) >= MAX_VIOLATIONS:
                    raise _FullError
                self._known.add(key)
                self.violations.append(violation)


class Walk:
    """One walk: the steps that are left, and the verdicts that may be asked for again."""

    def __init__(self, explainer: BaseExplainer, steps: int) -> None:
        self.explainer = explainer
        self._document = explainer.document
        self._steps = steps
        self._judged: dict[Hashable, list[Violation]] = {}
        # The base URIs on the way to the current node, outermost first: the dynamic scope (2020-12
        # core section 7.1).
        self._scope: tuple[str, ...] = ()

    def step(self, count: int = 1) -> None:
        """Count work; raises when it is too much."""
        self._steps -= count
        if self._steps < 0:
            raise _ExhaustedError

    def each(self, parts: Iterable[_ValuePart]) -> Iterator[_ValuePart]:
        """Yield parts of the value, each of which counts as work."""
        for part in parts:
            self.step()
            yield part

    def judge(self, schema: object, value: object, path: Path, out: ViolationList) -> None:
        """Add the violations of a subschema to those found."""
        self.step()
        if not isinstance(schema, dict):
            if schema is False:
                out.add(broken(path, "false", False, value))
            return
        types, checks = self.explainer.plan(schema)
        for name in types:
            if has_type(value, name):
                break
        else:
            if types:
                out.add(several_types(path, types, value))
                return
        if isinstance(value, (list, dict)) and self.explainer.fits(schema, value):
            return
        outer = self._scope
        if self.explainer.is_dynamic:
            base = self._document.base_of(schema)
            self._scope = outer if outer[-1:] == (base,) else (*outer, base)
        if checks:
            part = Part(schema, value, path)
            for keyword, check in checks:
                check(out, keyword, part)
        self._scope = outer

    def attempt(self, schema: object, value: object, path: Path) -> list[Violation]:
        """Return the violations of a subschema without reporting them."""
        if not self.explainer.refers:
            return self._fresh(schema, value, path)
        # A name has the path of its object, so the path alone does not tell a value.
        key = (id(schema), id(value), path, self._scope)
        known = self._judged.get(key)
        if known is None:
            # A reference that leads back here without descending asks nothing new.
            self._judged[key] = []
            known = self._judged[key] = self._fresh(schema, value, path)
        return known

    def _fresh(self, schema: object, value: object, path: Path) -> list[Violation]:
        found, outer = ViolationList(self), self._scope
        with suppress(_FullError):
            self.judge(schema, value, path, found)
        self._scope = outer
        return found.violations

    def target(self, keyword: str, schema: JSONObject) -> Any:
        """Return the schema to which a keyword refers now; None if only the engine knows it."""
        try:
            return self._document.target(keyword, schema, self._scope)
        except LookupError:
            return None


KeywordCheck = Callable[[ViolationList, str, Part], None]

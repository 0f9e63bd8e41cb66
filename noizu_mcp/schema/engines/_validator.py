"""The guards and the report around an engine, the same for both."""

from collections.abc import Callable
from typing import Any

from ..jsonschema._bounds import MAX_VALUE_DEPTH, is_deeper
from ..jsonschema._not_json import find_not_json
from ..jsonschema._violation import Violation

Verdict = Callable[[Any], bool]
Report = Callable[[Any], list[Violation]]
MatchPattern = Callable[[str], Callable[[str], bool]]


class Judge:
    """Judges values by an engine's verdict, and explains each rejection.

    What only an explanation needs is made by the first one.

    Args:
        schema: The schema.
        verdict: The engine: tells if a value fits; never raises.
        match_pattern: Compiles a pattern as the engine does.
        recursive: Whether values may be nested deeper than the schema is written.
        translate: Tells what the engine found where `Explainer` cannot follow.
        explainable: False for a dialect that `Explainer` does not speak.
        compile_part: Returns the engine's verdict on a subschema that refers to nothing; for
            engines that are much faster than an explanation.
    """

    def __init__(
        self,
        schema: Any,
        verdict: Verdict,
        match_pattern: MatchPattern,
        *,
        recursive: bool,
        translate: Report | None = None,
        explainable: bool = True,
        compile_part: Callable[[Any], Verdict] | None = None,
    ) -> None:
        self._schema = schema
        self._recursive = recursive
        self._translate = translate
        self._explainable = explainable
        self._compile_part = compile_part
        self._matchers: dict[str, Callable[[str], bool]] = {}
        self._match_pattern = match_pattern
        self._report: Report | None = None
        self.is_valid = _bounded(verdict) if recursive else verdict

    def violations(self, value: Any) -> list[Violation]:
        """Return the violations of a value, the first 100 of more.

        There is none exactly if `is_valid` accepts it.
        """
        if self.is_valid(value):
            return []
        if self._recursive and is_deeper(value, MAX_VALUE_DEPTH):
            return [Violation((), "", f"nested deeper than {MAX_VALUE_DEPTH} levels")]
        if self._report is None:
            self._report = self._choose_report()
        return self._report(value) or [
            find_not_json(value) or Violation((), "", "does not match the schema", None, value)
        ]

    def _choose_report(self) -> Report:
        # Most programs never see a violation, and none at import.
        from ..report._explain import Explainer, is_explainable

        if self._translate is None or (self._explainable and is_explainable(self._schema)):
            explainer = Explainer(self._schema, self._matches, self._compile_part)
            return lambda value: explainer.explain(self._schema, value)
        return self._translate

    def _matches(self, pattern: str, text: Any) -> bool:
        if not isinstance(text, str):
            # The name of a property that JSON cannot express.
            return False
        matcher = self._matchers.get(pattern)
        if matcher is None:
            matcher = self._matchers[pattern] = self._match_pattern(pattern)
        return matcher(text)


def _bounded(verdict: Verdict) -> Verdict:
    """Return the verdict with a limit on depth: engines recurse, and a C stack does not forgive."""

    def is_valid(value: Any) -> bool:
        return not is_deeper(value, MAX_VALUE_DEPTH) and verdict(value)

    return is_valid

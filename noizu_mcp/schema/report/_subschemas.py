"""An engine's verdicts on parts of a schema, so that an explanation can pass over what fits."""

from collections.abc import Callable
from typing import Any

from ..jsonschema._keywords import walk

Verdict = Callable[[Any], bool]
Compile = Callable[[Any], Verdict]


class Parts:
    """The subschemas of one schema; each is compiled when it is first asked about.

    Args:
        root: The schema, which is never asked about itself: only what breaks it is explained.
        compile_part: Returns the verdict on a schema; raises ValueError if it cannot.
    """

    def __init__(self, root: Any, compile_part: Compile) -> None:
        self._compile_part = compile_part
        self._verdicts: dict[int, Verdict] = {id(root): _unknown}

    def fits(self, schema: Any, value: Any) -> bool:
        """Tell if a value fits a subschema; False too where the engine cannot tell."""
        verdict = self._verdicts.get(id(schema))
        if verdict is None:
            verdict = self._verdicts[id(schema)] = self._verdict(schema)
        return verdict(value)

    def _verdict(self, schema: Any) -> Verdict:
        # A reference means something else, or nothing, outside of the whole schema.
        if any("$ref" in node for _path, node in walk(schema)):
            return _unknown
        try:
            return self._compile_part(schema)
        # What only a reference leads to may be no valid schema in all that nobody judges by.
        except ValueError:
            return _unknown


def _unknown(_value: Any) -> bool:
    return False

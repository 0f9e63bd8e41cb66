"""A schema of a peer, which judges values of the peer.

Theory of operation. The peer chooses schema and values, so the time for both is bounded. The schema
obeys the limits of `compile_schema(trusted=False)`. For a value, an upper bound of the work is
counted before it is judged: each part of it may meet each subschema and each element of an `enum`,
each character of its texts each pattern. A value over the bound is not judged. To find the words
for a violation takes longer by the depth of the schema, so a value over a lower bound gets one line
for all of its violations.
"""

from collections.abc import Mapping
from typing import Final

from .._schema_engine import EngineName
from .engines._compile import compile_schema
from .engines._engine import choose_engine, load_engine
from .jsonschema._document import Document, as_plain
from .jsonschema._violation import Violation

#: Checks of a value up to which its violations are listed one by one.
MAX_EXPLAINED: Final = 100_000
#: Characters of texts, times the number of patterns; to match them takes about a second.
MAX_MATCHED: Final = 200_000


class PeerSchema:
    """A JSON Schema of a peer, ready to judge values of the peer.

    Args:
        schema: The schema.
        engine: As for `compile_schema`.

    Raises:
        SchemaError: It is not valid, refers to another document, breaks a limit, or the engine does
            not serve it.
        ValueError: As for `compile_schema`.
    """

    def __init__(
        self, schema: Mapping[str, object] | bool, engine: EngineName | None = None
    ) -> None:
        engine = choose_engine(engine)
        self._compiled = compile_schema(schema, engine, trusted=False)
        self._most = load_engine(engine).MAX_WORK
        document = Document(as_plain(schema))
        self._patterns = len(document.patterns())
        self._cost = document.weighed(_weigh).cost

    def violations(self, value: object) -> list[Violation] | None:
        """Return the violations of a value, `[]` if it fits; None if that would take too long."""
        parts, characters = _measure(value)
        work = parts * self._cost
        if work > self._most or characters * self._patterns > MAX_MATCHED:
            return None
        if work > MAX_EXPLAINED:
            fits = self._compiled.is_valid(value)
            return [] if fits else [Violation((), "", "does not match the schema")]
        return self._compiled.violations(value)


def _weigh(node: Mapping[str, object]) -> int:
    """Return the cost of a node: a value is compared with each value in `enum` and `const`."""
    listed = [node[keyword] for keyword in ("enum", "const") if keyword in node]
    return _measure(listed)[0]


def _measure(value: object) -> tuple[int, int]:
    """Return the number of values in a value, and the characters of its texts and names."""
    parts, characters, waiting = 0, 0, [value]
    while waiting:
        node = waiting.pop()
        parts += 1
        if isinstance(node, str):
            characters += len(node)
        elif isinstance(node, dict):
            waiting += node.values()
            characters += sum(map(len, node))
        elif isinstance(node, list):
            waiting += node
    return parts, characters

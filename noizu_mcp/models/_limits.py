"""The limits of strict schemas: their sizes, counted over the tools of one request."""

from typing import Final, NamedTuple

from .._value import JSONObject
from ..schema import subschemas


class StrictModeError(Exception):
    """A schema cannot be given to a model in strict mode.

    Attributes:
        path: The place of the reason.
        keyword: The keyword.
        text: The reason.
    """

    def __init__(self, path: str, keyword: str, text: str) -> None:
        self.path, self.keyword, self.text = path, keyword, text
        super().__init__(text)


class Size(NamedTuple):
    """The size of an adapted schema.

    Attributes:
        properties: Properties of all objects.
        optional: Those that are not required.
        unions: Schemas with `anyOf` or several types.
        depth: Levels of objects and lists.
        values: Values of all enums.
        characters: Characters of the names of properties and definitions, and of enum values.
        largest: Characters of the largest enum with more than 250 values.
    """

    properties: float = 0
    optional: float = 0
    unions: float = 0
    depth: float = 0
    values: float = 0
    characters: float = 0
    largest: float = 0


def measure(schema: JSONObject) -> Size:
    """Measure a schema; what it refers to counts once."""
    names = schema.get("properties", {})
    enum = schema.get("enum", ())
    text = sum(len(str(each)) for each in enum)
    size = Size(
        properties=len(names),
        optional=len(names) - len(schema.get("required", ())),
        unions=int("anyOf" in schema or isinstance(schema.get("type"), list)),
        values=len(enum),
        characters=text + sum(map(len, (*names, *schema.get("$defs", ())))),
        largest=text if len(enum) > 250 else 0,
    )
    deeper = 0.0
    for path, child in subschemas(schema):
        inner = measure(child) if isinstance(child, dict) else Size()
        deeper = max(deeper, inner.depth + (path[0] in ("properties", "items")))
        largest = max(size.largest, inner.largest)
        sums = (ours + theirs for ours, theirs in zip(size, inner, strict=True))
        size = Size(*sums)._replace(largest=largest)
    return size._replace(depth=deeper)


class ApiLimits(NamedTuple):
    """The limits of one API.

    Attributes:
        size: The largest schema of one tool.
        all_tools: The largest sum of the schemas of all tools.
        tools: Strict tools in one request.
    """

    size: Size
    all_tools: Size
    tools: float


#: The members of a `Size`, for people.
_WORDS: Final = (
    "properties",
    "optional properties",
    "alternatives",
    "levels",
    "enum values",
    "characters of names and enum values",
    "characters in a long enum",
)


class Budget:
    """The strict schemas of one request, counted.

    Args:
        limits: The limits.
    """

    def __init__(self, limits: ApiLimits) -> None:
        self._limits = limits
        self._used = Size()
        self._tools = 0

    def take(self, schema: JSONObject) -> None:
        """Count one more schema.

        Raises:
            Refused: The limits do not allow it.
        """
        size = measure(schema)
        total = Size(*map(sum, zip(size, self._used, strict=True)))
        checks = ((size, self._limits.size), (total, self._limits.all_tools))
        for found, most in checks:
            for words, ours, limit in zip(_WORDS, found, most, strict=True):
                if ours > limit:
                    text = f"strict mode takes {limit:.0f} {words}, and there would be {ours:.0f}"
                    raise StrictModeError("", "", text)
        if self._tools == self._limits.tools:
            raise StrictModeError("", "", f"the API takes {self._tools} strict tools")
        self._tools += 1
        self._used = total

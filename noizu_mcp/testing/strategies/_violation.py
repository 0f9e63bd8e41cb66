"""A value together with the keyword that it breaks, and the error for schemas without values."""

from typing import NamedTuple

from ..._errors import McpException
from ..._value import JSON


class Unsatisfiable(McpException, ValueError):
    """There is no value to draw: nothing fits a schema, or nothing breaks it."""


class Violation(NamedTuple):
    """A value that breaks a schema, as `violating(…, labelled=True)` draws it.

    Attributes:
        value: The value.
        keyword: The keyword that it breaks, the first if there are several.
        path: The part that breaks it: keys and indexes from the root of the value. It ends with the
            name of a member that is missing.
    """

    value: JSON
    keyword: str
    path: tuple[str | int, ...]

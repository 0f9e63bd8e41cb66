"""A mistake in a schema or in a field declaration, found when its class is made."""

from typing import NamedTuple


class Fault(NamedTuple):
    """One thing that is wrong in a schema or a declaration.

    Attributes:
        path: Where: keys and indexes into the schema, `("properties", "q", "minLenght")`, or the
            name of a field, `("limit",)`.
        text: The mistake and its correction, one line.
        owner: The class that declares it, if any; its source is searched for the line.
        line: The line inside JSON text, counted from 1, if the schema came as text.
        column: The column inside JSON text, counted from 1, if the schema came as text.
    """

    path: tuple[str | int, ...]
    text: str
    owner: type | None = None
    line: int | None = None
    column: int | None = None

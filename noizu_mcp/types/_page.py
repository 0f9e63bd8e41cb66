"""`Page`: one page of a list (`server/utilities/pagination`)."""

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import attrs

from .._util import final
from .._value import Value

PageEntry = TypeVar("PageEntry")


@final
@attrs.frozen(eq=False, repr=False)
class Page(Value, Generic[PageEntry]):
    """One page of a list, on both ends; iteration gives its entries.

    Attributes:
        items: The entries.
        next_cursor: The cursor of the next page; None on the last one.
    """

    items: Sequence[PageEntry]
    next_cursor: str | None = None

    def __iter__(self) -> Iterator[PageEntry]:
        return iter(self.items)

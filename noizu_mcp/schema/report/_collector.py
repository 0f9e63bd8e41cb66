"""What an explanation has found so far: each violation once, and not more than anybody reads."""

from collections.abc import Callable, Iterable

from ..jsonschema._violation import MAX_VIOLATIONS, Path, Violation

# Words take longer to find than a look at a subschema does.
_STEPS = 10


class FullError(Exception):
    """There is no room for another violation: its list is complete as it is."""


class Found(list[Violation]):
    """The violations of one value, or of one alternative for it.

    Args:
        spend: Told how many steps each of them takes; it may raise.
    """

    def __init__(self, spend: Callable[[int], None]) -> None:
        super().__init__()
        self._spend = spend
        self._known: set[tuple[Path, str, str]] = set()

    def append(self, violation: Violation) -> None:
        """Add a violation that is not known yet; raises `FullError` when there is no room."""
        self._spend(_STEPS)
        key = (violation.path, violation.keyword, violation.message)
        if key in self._known:
            return
        if len(self) >= MAX_VIOLATIONS:
            raise FullError
        self._known.add(key)
        super().append(violation)

    def extend(self, violations: Iterable[Violation]) -> None:
        """Add several, each when its turn comes."""
        for violation in violations:
            self.append(violation)

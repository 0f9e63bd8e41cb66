"""What one node has asked its backend: counted always, read by metrics."""

from bisect import bisect_left
from collections import Counter
from typing import Final

#: Upper bounds of the times that are counted, in seconds. An operation takes below a millisecond,
#: and ends after its timeout at the latest.
TIMES: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)


class Durations:
    """A histogram.

    Attributes:
        counts: The number of values up to each of `TIMES`, and of larger ones.
        total: Their sum in seconds.
    """

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(TIMES) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count a value."""
        self.counts[bisect_left(TIMES, seconds)] += 1
        self.total += seconds


class BackendUse:
    """The operations of one node.

    Attributes:
        is_up: False while the backend cannot be reached.
        operations: Number of operations, by name and outcome.
        durations: Their durations, by name.
    """

    def __init__(self) -> None:
        self.is_up = True
        self.operations: Counter[tuple[str, str]] = Counter()
        self.durations: dict[str, Durations] = {}

    def observe(self, operation: str, outcome: str, seconds: float) -> None:
        """Count an operation; see `Backend.observe`."""
        self.operations[operation, outcome] += 1
        durations = self.durations.get(operation)
        if durations is None:
            durations = self.durations[operation] = Durations()
        durations.add(seconds)

"""The revisions and transports on which a test runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from ..._nearest import hint_at
from ...protocol import SUPPORTED_VERSIONS
from .._served import TRANSPORTS, Transport

#: The fixtures of pytest-trio whose time passes when every task sleeps, or manually. Pipes and
#: sockets need real time, so a test with such a clock runs in memory.
VIRTUAL_CLOCKS: Final = frozenset({"autojump_clock", "mock_clock"})


class Variant(NamedTuple):
    """A revision and a transport: one way to run a test.

    Attributes:
        version: The revision: `2026-07-28`.
        transport: `memory`, `stdio` or `http`.
    """

    version: str
    transport: Transport

    def __str__(self) -> str:
        return f"{self.version}-{self.transport}"


def choose_variants(
    marks: Iterable[Mapping[str, Sequence[str]]],
    configured: Mapping[str, Sequence[str]],
    fixtures: Iterable[str] = (),
) -> list[Variant]:
    """Choose the variants of a test.

    Args:
        marks: The keywords of its marks `mcp`, the closest first. `versions` and `transports` are
            each taken from the closest mark that has them.
        configured: `versions` and `transports` of the configuration; empty for all.
        fixtures: The names of its fixtures; a virtual clock allows only the transport `memory`.

    Returns:
        At least one variant: the newest revision first, and memory before other transports.

    Raises:
        ValueError: A mark or the configuration names something that does not exist, or nothing
            remains.
    """
    given = list(marks)
    for mark in given:
        if unknown := mark.keys() - {"versions", "transports"}:
            name = min(unknown)
            raise ValueError(f"the mark mcp has no {name!r}; {hint_at(name, _NAMES)}")
    versions = _choose("versions", SUPPORTED_VERSIONS, [*given, configured])
    transports = _choose("transports", TRANSPORTS, [*given, configured])
    if not VIRTUAL_CLOCKS.isdisjoint(fixtures):
        transports = [each for each in transports if each == "memory"]
        if not transports:
            raise ValueError("a virtual clock needs the transport memory: pipes and sockets do not"
                             " wait for it")  # fmt: skip
    return [Variant(version, transport) for version in versions for transport in transports]


_Choice = TypeVar("_Choice", bound=str)
_NAMES: Final = ("versions", "transports")


def _choose(
    name: str, every: Sequence[_Choice], sources: Iterable[Mapping[str, Sequence[str]]]
) -> list[_Choice]:
    """Return the values of the first source that has some, in the order of `every`."""
    wanted: Sequence[str]
    wanted = next((each[name] for each in sources if each.get(name)), every)
    listed = [wanted] if isinstance(wanted, str) else list(wanted)
    for value in listed:
        if value not in every:
            raise ValueError(f"{name}: there is no {value!r}; there are: {', '.join(every)}")
    return [value for value in every if value in listed]

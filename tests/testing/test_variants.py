"""The revisions and transports of a test: marks, configuration, virtual clocks."""

import pytest

from noizu_mcp.testing.plugin import Variant, choose_variants

NOTHING = {"versions": [], "transports": []}


def test_a_test_runs_everywhere() -> None:
    """It has four revisions on three transports, the newest revision and memory first."""
    variants = choose_variants([], NOTHING)

    assert len(variants) == 12
    assert [str(each) for each in variants[:4]] == [
        "2026-07-28-memory",
        "2026-07-28-stdio",
        "2026-07-28-http",
        "2025-11-25-memory",
    ]


def test_the_closest_mark_wins() -> None:
    """Each axis comes from the closest mark that sets it, and then from the configuration."""
    marks = [
        {"transports": ["http", "memory"]},
        {"versions": "2025-03-26", "transports": ["stdio"]},
    ]
    configured = {"versions": ["2025-11-25"], "transports": []}

    assert choose_variants(marks, configured) == [
        Variant("2025-03-26", "memory"),
        Variant("2025-03-26", "http"),
    ]
    assert {each.version for each in choose_variants([], configured)} == {"2025-11-25"}


@pytest.mark.parametrize("clock", ["autojump_clock", "mock_clock"])
def test_a_virtual_clock_needs_memory(clock: str) -> None:
    """A test with a virtual clock runs in memory, and cannot select another transport."""
    assert {each.transport for each in choose_variants([], NOTHING, ["x", clock])} == {"memory"}
    with pytest.raises(ValueError, match="a virtual clock needs the transport memory"):
        choose_variants([{"transports": ["http"]}], NOTHING, [clock])


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        ({"version": "2025-11-25"}, "the mark mcp has no 'version'; did you mean versions?"),
        ({"versions": ["2024-11-05"]}, "versions: there is no '2024-11-05'; there are: 2026-07-28"),
        ({"transports": "sse"}, "transports: there is no 'sse'; there are: memory, stdio, http"),
    ],
)
def test_mistakes_are_told(mark: dict[str, object], text: str) -> None:
    """The error for an unknown name lists the known ones."""
    with pytest.raises(ValueError, match=r"versions|transports") as caught:
        choose_variants([mark], NOTHING)

    assert text in str(caught.value)

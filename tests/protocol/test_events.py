"""Events are values."""

from noizu_mcp.protocol import Cancel, Ready


def test_events_compare_by_what_they_say():
    """Two that say the same are the same; so they can stand in sets."""
    assert Ready() == Ready()
    assert Ready() != Cancel(1, None)
    assert len({Ready(), Ready(), Cancel(1, None), Cancel(1, None)}) == 2

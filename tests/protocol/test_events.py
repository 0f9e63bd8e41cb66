"""Events are values."""

from noizu_mcp.protocol import CancelRequest, Ready


def test_events_compare_by_what_they_say():
    """Events with equal attributes are equal, and can be members of sets."""
    assert Ready() == Ready()
    assert Ready() != CancelRequest(1, None)
    assert len({Ready(), Ready(), CancelRequest(1, None), CancelRequest(1, None)}) == 2

"""Three processes on one Redis, killed under load; see `chaos.py`."""

import pytest
import trio

from . import chaos

pytestmark = [pytest.mark.slow, pytest.mark.time_limit(180)]


def test_processes_are_killed_under_load(tmp_path):
    """Nothing is executed twice, no answer is lost, and every failure has a fault as its reason."""
    if not chaos.is_possible():
        pytest.skip("needs redis-server and haproxy")
    report = trio.run(chaos.Chaos(tmp_path, 25.0).run)
    assert (report.doubled, report.lost, report.tracebacks) == ([], [], 0), report.summary()
    assert (report.unexplained, report.late) == ([], []), report.summary()
    assert sum(report.calls.values()) > 100

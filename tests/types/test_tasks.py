"""The value of a task on the wire."""

import pytest

from noizu_mcp import ProtocolError
from noizu_mcp.types import Task

WIRE = {
    "taskId": "t",
    "status": "working",
    "createdAt": "2026-07-28T00:00:00Z",
    "lastUpdatedAt": "2026-07-28T00:00:01Z",
    "ttlMs": None,
}


def test_reading_and_writing():
    """It is written as it was read; a missing end is written as null."""
    for more in ({}, {"ttlMs": 5, "pollIntervalMs": 1, "statusMessage": "m", "x": 1}):
        assert Task.from_wire({**WIRE, **more}).to_wire() == {**WIRE, **more}


def test_reading_a_result():
    """The envelope of a result is not part of the task."""
    info = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
    task = Task.from_wire({**WIRE, "resultType": "task", "_meta": info})
    assert task == Task.from_wire(WIRE)
    assert not task.ended


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_the_end(status):
    """A task with one of these statuses has ended."""
    assert Task.from_wire({**WIRE, "status": status}).ended


@pytest.mark.parametrize("key", ["taskId", "status", "createdAt", "lastUpdatedAt"])
def test_what_is_no_task(key):
    """The error has the missing field."""
    with pytest.raises(ProtocolError, match=key):
        Task.from_wire({name: value for name, value in WIRE.items() if name != key})

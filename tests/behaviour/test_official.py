"""The check of messages against the official schemas finds faults."""

import pytest

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


@pytest.fixture(params=REVISIONS)
def check(request, official):
    """Return a function that checks a message of one revision; skip without the schemas."""
    if request.param not in official.documents:
        pytest.skip("no official schemas beside the checkout")

    def run(message, method=None):
        official.check(request.param, {"jsonrpc": "2.0", **message}, method)

    run.stateless = request.param == "2026-07-28"
    return run


@pytest.mark.parametrize(
    ("message", "method"),
    [
        ({"id": 1, "result": 5}, None),
        ({"id": 1.5, "result": {}}, None),
        ({"id": 1, "error": {"code": "x", "message": "m"}}, None),
        ({"id": 1, "error": {"code": 1}}, None),
        ({"id": 1, "result": {"content": [{"type": "nope"}]}}, "tools/call"),
        ({"id": 1, "result": {"tools": [{"name": 5}]}}, "tools/list"),
        ({"method": "notifications/progress", "params": {"progress": "x"}}, None),
        ({"method": "notifications/message", "params": {"level": "loud", "data": 1}}, None),
        ({"method": "notifications/nope"}, None),
    ],
)
def test_wrong_messages_are_found(check, message, method):
    """Wrong envelopes, results, errors and notifications are found, in every revision."""
    with pytest.raises(AssertionError):
        check(message, method)


TASK = {
    "taskId": "t" * 20,
    "status": "working",
    "createdAt": "2026-07-28T00:00:00Z",
    "lastUpdatedAt": "2026-07-28T00:00:00.001Z",
    "ttlMs": None,
}
TAG = {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}}


@pytest.mark.parametrize("check", ["2026-07-28"], indirect=True)
@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("tools/call", {**TASK, "resultType": "task", "ttlMs": 0.5}),
        ("tools/call", {**TASK, "resultType": "task", "result": {}}),
        ("tools/call", {"task": TASK, "resultType": "task"}),
        ("tasks/get", {**TASK, "resultType": "task"}),
        ("tasks/get", {**TASK, "resultType": "complete", "status": "completed"}),
        ("tasks/get", {**TASK, "resultType": "complete", "error": {"code": 1, "message": "m"}}),
        ("tasks/get", {**TASK, "resultType": "complete", "createdAt": "today"}),
        ("tasks/update", {**TASK, "resultType": "complete"}),
        ("tasks/cancel", {}),
        (None, TASK),
    ],
)
def test_wrong_tasks_are_found(check, method, result):
    """Malformed tasks, and tasks in other results, are found."""
    message = {"id": 1, "result": result}
    if method is None:
        message = {"method": "notifications/tasks", "params": result}
    with pytest.raises(AssertionError):
        check(message, method)


def test_right_messages_pass(check):
    """Valid messages of every revision pass, with the additions of the newest."""
    more = {"resultType": "complete"} if check.stateless else {}
    check({"id": 1, "result": {"content": [], **more}}, "tools/call")
    check({"id": "1", "error": {"code": -32601, "message": "m"}})
    check({"method": "notifications/progress", "params": {"progressToken": 0, "progress": 1.5}})
    check({"error": {"code": -32700, "message": "Parse error"}})
    if check.stateless:
        check({"id": 1, "result": {**TASK, "resultType": "task"}}, "tools/call")
        check({"id": 1, "result": {**TASK, **more}}, "tasks/get")
        check({"id": 1, "result": more}, "tasks/cancel")
        check({"method": "notifications/tasks", "params": {**TASK, **TAG}})

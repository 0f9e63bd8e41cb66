"""The messages of the extension `io.modelcontextprotocol/tasks`, for the schema of 2026-07-28.

After `schema/2026-07-28` of the extension; members that a task must not have are refused here, too.
"""

from typing import Any

_TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}
_ENDS = ("inputRequests", "result", "error")


def _state(status: str, **carries: Any) -> dict[str, Any]:
    absent = {key: False for key in _ENDS if key not in carries}
    properties = {"status": {"const": status}, **carries, **absent}
    return {"properties": properties, "required": [*carries]}


_ANSWER = {"result": {"$ref": "#/$defs/CallToolResult"}}
_ASKS = {"inputRequests": {"$ref": "#/$defs/InputRequests", "minProperties": 1}}
_DETAILED = [{"$ref": "#/$defs/Task"}, {"$ref": "#/$defs/TaskState"}]


def _typed(name: str) -> dict[str, Any]:
    return {"properties": {"resultType": {"const": name}}, "required": ["resultType"]}


SHAPES: dict[str, Any] = {
    "Task": {
        "type": "object",
        "properties": {
            "taskId": {"type": "string", "minLength": 20},
            "status": {"enum": ["working", "input_required", "completed", "failed", "cancelled"]},
            "statusMessage": {"type": "string"},
            "createdAt": _TIME,
            "lastUpdatedAt": _TIME,
            "ttlMs": {"type": ["integer", "null"], "minimum": 1},
            "pollIntervalMs": {"type": "integer", "minimum": 1},
            "task": False,
            "ttl": False,
            "pollInterval": False,
            "requestState": False,
        },
        "required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"],
    },
    "TaskState": {
        "oneOf": [
            _state("working"),
            _state("input_required", **_ASKS),
            _state("completed", **_ANSWER),
            _state("failed", error={"$ref": "#/$defs/Error"}),
            _state("cancelled"),
        ]
    },
    "CreateTaskResult": {
        "allOf": [{"$ref": "#/$defs/Task"}, _typed("task")],
        "properties": dict.fromkeys(_ENDS, False),
    },
    "GetTaskResult": {"allOf": [*_DETAILED, _typed("complete")]},
    "TaskAcknowledgement": {
        "allOf": [{"$ref": "#/$defs/EmptyResult"}, _typed("complete")],
        "properties": dict.fromkeys(("taskId", "status", *_ENDS), False),
    },
    "TaskStatusNotification": {
        "properties": {
            "method": {"const": "notifications/tasks"},
            "params": {
                "allOf": _DETAILED,
                "properties": {"_meta": {"required": ["io.modelcontextprotocol/subscriptionId"]}},
                "required": ["_meta"],
            },
        },
        "required": ["params"],
    },
}

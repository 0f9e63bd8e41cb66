"""The record of a task in the backend: all that another node needs to serve it."""

from collections.abc import Sequence
from typing import Any

import attrs

from ..._util import utc_text
from ..._value import JSONObject
from ...jsonrpc import INTERNAL_ERROR
from ...types import RequireScopes
from ._known_task import KnownTask
from ._running_task import ENDED


@attrs.frozen(eq=False, slots=False)
class TaskRecord(KnownTask):
    """A task as the backend has it.

    Attributes:
        id: The unguessable name of the task.
        owner: The key of its principal; None without authentication.
        scopes: The scopes that its call needed.
        wire: The task in wire format.
        node: The id of the node that runs it, or ran it to its end; "" if that node is gone.
        attempt: The number of this run, from 1.
        born: The time of its creation, by the clock of the backend.
        expires: The time at which it is forgotten.
        call: The call, for the next attempt; None if the task does not run again.
    """

    id: str
    owner: str | None
    scopes: Sequence[RequireScopes]
    wire: JSONObject
    node: str
    attempt: int
    born: float
    expires: float
    call: JSONObject | None = None

    @property
    def is_over(self) -> bool:
        """True in a final state."""
        return self.wire["status"] in ENDED

    @property
    def shown(self) -> JSONObject:
        """The task in wire format."""
        return self.wire

    @property
    def required(self) -> Sequence[RequireScopes]:
        """The scopes that its call needed."""
        return self.scopes

    def to_json(self) -> JSONObject:
        """Return the record as JSON."""
        scopes = [
            [each.scopes, {name: sorted(implied) for name, implied in each.hierarchy.items()}]
            for each in self.scopes
        ]
        return {**attrs.asdict(self, recurse=False), "scopes": scopes}

    def failed(self, message: str, expires: float) -> "TaskRecord":
        """Return the record of the same task with an error as its end.

        Args:
            message: The text of the error.
            expires: See Attributes.
        """
        wire = {key: value for key, value in self.wire.items() if key != "inputRequests"}
        wire |= {
            "status": "failed",
            "statusMessage": message,
            "lastUpdatedAt": utc_text(),
            "ttlMs": round((expires - self.born) * 1000),
            "error": {"code": INTERNAL_ERROR, "message": message},
        }
        return attrs.evolve(self, wire=wire, node="", expires=expires, call=None)


def read_record(value: Any) -> TaskRecord | None:
    """Read a record from JSON; None if it is not of this version of the package."""
    try:
        scopes = tuple(
            RequireScopes(*scopes, hierarchy=hierarchy) for scopes, hierarchy in value["scopes"]
        )
        return TaskRecord(**{**value, "scopes": scopes})
    except (TypeError, ValueError, KeyError):
        return None

"""The change of a task, which its followers are told."""

from typing import NamedTuple


class TaskChange(NamedTuple):
    """The change of a task, for its followers.

    Attributes:
        id: The id of the task. The state is read when the notice is sent, so it is never stale.
    """

    id: str

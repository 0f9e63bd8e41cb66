"""The change of a task, for its followers."""

from typing import NamedTuple


class TaskChange(NamedTuple):
    """The change of a task, for its followers.

    Attributes:
        id: The id of the task. The state is read when the notification is sent, so it is up to
            date.
    """

    id: str

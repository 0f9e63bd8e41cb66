"""What the parts of the sessions of many nodes share: the names of messages, and bounds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from ...._value import JSON, JSONObject
from ....backends import BackendUnavailable
from ._asgi import HttpRefusal, unavailable

#: Seconds for one use of the backend, whatever its engine does: a request has two at most.
PATIENCE: Final = 1.5

# The kinds of messages to other nodes. All begin with the digest of the session.
MESSAGE: Final = "session message"  # of the client, for a request at the receiver; its text
STORED: Final = "session message in a record"  # the same; the key of the record
ENDED: Final = "session ended"
REPLACED: Final = "session read elsewhere"  # the replaced reader
RESTORED: Final = "session written again"
OVERRULED: Final = "session overruled"  # a copy that knew more has replaced the record
UNWATCHED: Final = "session unwatched"  # the resource that the receiver keeps
WATCHES: Final = "session watches"  # a resource, and whether it is watched; to the reader
CHANGED_HERE: Final = "session changed"  # a change for this session alone
NOTICE: Final = "session notice"  # a notification for this session alone; its text

#: Changes a record: returns the new value for the present one, or None to leave it.
Edit = Callable[[JSONObject], JSONObject | None]


@contextmanager
def in_time() -> Iterator[None]:
    """Bound the time of an operation.

    Raises:
        BackendUnavailable: The time was over.
    """
    try:
        with trio.fail_after(PATIENCE):
            yield
    except trio.TooSlowError:
        raise BackendUnavailable(f"no answer within {PATIENCE:g} s") from None


def is_record(value: JSON) -> bool:
    """Tell whether a value is the record of a session, as this version writes it."""
    return isinstance(value, dict) and isinstance(value.get("values"), dict)


def offline() -> HttpRefusal:
    """Make the refusal of a request while the backend cannot answer (503)."""
    return unavailable("The session cannot be looked up now", 1)

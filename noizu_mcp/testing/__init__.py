"""What tests of a server use: a client in memory, and what was said on the wire."""

from .._util import publish
from ..client import connect as connect
from ._transcript import Entry as Entry
from ._transcript import Transcript as Transcript
from ._waiting import assert_notification as assert_notification
from ._waiting import assert_progress as assert_progress
from ._waiting import refute_notification as refute_notification

__all__ = [
    "Entry",
    "Transcript",
    "assert_notification",
    "assert_progress",
    "connect",
    "refute_notification",
]

publish(globals())

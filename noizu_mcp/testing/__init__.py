"""Tools for tests of a server: a client in memory, and transcripts of its messages."""

from .._util import publish
from ..client import connect as connect
from ._transcript import Entry as Entry
from ._transcript import Transcript as Transcript
from ._transcript import assert_notification as assert_notification
from ._transcript import assert_progress as assert_progress
from ._transcript import refute_notification as refute_notification

__all__ = [
    "Entry",
    "Transcript",
    "assert_notification",
    "assert_progress",
    "connect",
    "refute_notification",
]

publish(globals())

"""The trio engine: one peer on one stream, either end."""

from .._log import MOST_CRASHES as MOST_CRASHES
from .._log import SHOWN as SHOWN
from .._log import Seldom as Seldom
from .._log import logger as logger
from .._log import seldom as seldom
from .._util import publish
from ._abc import MessageStream as MessageStream
from ._abc import SessionEnded as SessionEnded
from ._abc import Unanswered as Unanswered
from ._channel import Channel as Channel
from ._channel import Collector as Collector
from ._channel import Delivery as Delivery
from ._desk import Desk as Desk
from ._desk import Handler as Handler
from ._desk import Peer as Peer
from ._exchange import Exchange as Exchange
from ._exchange import Job as Job
from ._failure import crashes_logged as crashes_logged
from ._failure import is_being_cancelled as is_being_cancelled
from ._failure import is_crash as is_crash
from ._failure import lone as lone
from ._failure import single_failure as single_failure
from ._failure import split as split
from ._gate import LoopGate as LoopGate
from ._leader import run_leading as run_leading
from ._link import Link as Link
from ._outbox import Outbox as Outbox
from ._waiters import OnProgress as OnProgress
from ._watch import Fate as Fate
from ._watch import Record as Record
from ._watch import Watch as Watch

__all__ = [
    "MOST_CRASHES",
    "SHOWN",
    "Channel",
    "Collector",
    "Delivery",
    "Desk",
    "Exchange",
    "Fate",
    "Handler",
    "Job",
    "Link",
    "LoopGate",
    "MessageStream",
    "OnProgress",
    "Outbox",
    "Peer",
    "Record",
    "Seldom",
    "SessionEnded",
    "Unanswered",
    "Watch",
    "crashes_logged",
    "is_being_cancelled",
    "is_crash",
    "logger",
    "lone",
    "run_leading",
    "seldom",
    "single_failure",
    "split",
]

publish(globals())

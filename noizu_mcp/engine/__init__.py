"""The trio engine: one peer on one stream, either end."""

from .._log import MOST_CRASHES as MOST_CRASHES
from .._log import SHOWN as SHOWN
from .._log import Seldom as Seldom
from .._log import logger as logger
from .._log import seldom as seldom
from .._util import publish
from ._dispatcher import Dispatcher as Dispatcher
from ._dispatcher import Peer as Peer
from ._failure import call_in_thread as call_in_thread
from ._failure import call_user_code as call_user_code
from ._failure import crashes_logged as crashes_logged
from ._failure import enter_user_code as enter_user_code
from ._failure import is_being_cancelled as is_being_cancelled
from ._failure import is_crash as is_crash
from ._failure import run_user_code as run_user_code
from ._failure import single_failure as single_failure
from ._failure import split_cancellation as split_cancellation
from ._failure import unwrap_single as unwrap_single
from ._message_loop import MessageLoop as MessageLoop
from ._observer import Ending as Ending
from ._observer import RequestObserver as RequestObserver
from ._outbox import Outbox as Outbox
from ._pending import OnProgress as OnProgress
from ._portal import Portal as Portal
from ._request import BatchReply as BatchReply
from ._request import Delivery as Delivery
from ._request import InboundRequest as InboundRequest
from ._request import InFlight as InFlight
from ._request import Job as Job
from ._request import ReplyChannel as ReplyChannel
from ._request import TaskScope as TaskScope
from ._request import run_eager as run_eager
from ._stream import MessageStream as MessageStream
from ._stream import SessionEnded as SessionEnded
from ._stream import Unanswered as Unanswered

__all__ = [
    "MOST_CRASHES",
    "SHOWN",
    "BatchReply",
    "Delivery",
    "Dispatcher",
    "Ending",
    "InFlight",
    "InboundRequest",
    "Job",
    "MessageLoop",
    "MessageStream",
    "OnProgress",
    "Outbox",
    "Peer",
    "Portal",
    "ReplyChannel",
    "RequestObserver",
    "Seldom",
    "SessionEnded",
    "TaskScope",
    "Unanswered",
    "call_in_thread",
    "call_user_code",
    "crashes_logged",
    "enter_user_code",
    "is_being_cancelled",
    "is_crash",
    "logger",
    "run_eager",
    "run_user_code",
    "seldom",
    "single_failure",
    "split_cancellation",
    "unwrap_single",
]

publish(globals())

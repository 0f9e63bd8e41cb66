"""The trio engine: one peer on one stream, either end."""

from .._groups import single_failure as single_failure
from .._groups import unwrap_single as unwrap_single
from .._log import MOST_CRASHES as MOST_CRASHES
from .._log import SHOWN as SHOWN
from .._log import ThrottledLog as ThrottledLog
from .._log import logger as logger
from .._log import throttled_log as throttled_log
from .._util import publish as _publish
from ._contracts import Delivery as Delivery
from ._contracts import Ending as Ending
from ._contracts import MessageStream as MessageStream
from ._contracts import Outgoing as Outgoing
from ._contracts import ReplyChannel as ReplyChannel
from ._contracts import RequestObserver as RequestObserver
from ._contracts import SessionEnded as SessionEnded
from ._contracts import Unanswered as Unanswered
from ._dispatcher import Dispatcher as Dispatcher
from ._dispatcher import Peer as Peer
from ._eager import TaskScope as TaskScope
from ._eager import report_waits as report_waits
from ._eager import run_eager as run_eager
from ._failure import KeptFailure as KeptFailure
from ._failure import call_in_thread as call_in_thread
from ._failure import call_user_code as call_user_code
from ._failure import check_on_trio as check_on_trio
from ._failure import crashes_logged as crashes_logged
from ._failure import enter_user_code as enter_user_code
from ._failure import is_being_cancelled as is_being_cancelled
from ._failure import is_crash as is_crash
from ._failure import run_user_code as run_user_code
from ._failure import split_cancellation as split_cancellation
from ._handover import HeldManager as HeldManager
from ._handover import settle as settle
from ._message_loop import MessageLoop as MessageLoop
from ._outbox import Outbox as Outbox
from ._pending import Arrival as Arrival
from ._pending import OnProgress as OnProgress
from ._pending import PendingRequests as PendingRequests
from ._pending import SpawnTask as SpawnTask
from ._request import BatchReply as BatchReply
from ._request import InboundRequest as InboundRequest
from ._request import InFlight as InFlight
from ._request import Job as Job

_publish(globals())

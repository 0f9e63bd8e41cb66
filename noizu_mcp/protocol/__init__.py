"""The Model Context Protocol without I/O: peers for both eras that turn messages into events."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ._adapt import adapt_block as adapt_block
from ._adapt import adapt_definition as adapt_definition
from ._adapt import adapt_implementation as adapt_implementation
from ._adapt import adapt_output_schema as adapt_output_schema
from ._adapt import adapt_tool as adapt_tool
from ._adapt import adapt_tool_result as adapt_tool_result
from ._events import NOWHERE as NOWHERE
from ._events import CancelRequest as CancelRequest
from ._events import Dispatch as Dispatch
from ._events import Envelope as Envelope
from ._events import Fanout as Fanout
from ._events import Notice as Notice
from ._events import Origin as Origin
from ._events import PeerEvent as PeerEvent
from ._events import Ready as Ready
from ._events import ReportProgress as ReportProgress
from ._events import Resolve as Resolve
from ._events import SendAnswer as SendAnswer
from ._ledger import Ledger as Ledger
from ._request_headers import decode_value as decode_value
from ._request_headers import encode_value as encode_value
from ._request_headers import mirroring_headers as mirroring_headers
from ._request_headers import param_fault as param_fault
from ._revisions import CHANGES as CHANGES
from ._revisions import CLIENT_REQUESTS as CLIENT_REQUESTS
from ._revisions import HANDSHAKE_VERSIONS as HANDSHAKE_VERSIONS
from ._revisions import LATEST_HANDSHAKE as LATEST_HANDSHAKE
from ._revisions import NAMED_BY as NAMED_BY
from ._revisions import REVISIONS as REVISIONS
from ._revisions import SERVER_REQUESTS as SERVER_REQUESTS
from ._revisions import STATELESS as STATELESS
from ._revisions import SUPPORTED_VERSIONS as SUPPORTED_VERSIONS
from ._revisions import Method as Method
from ._revisions import Revision as Revision
from ._revisions import negotiate as negotiate
from ._server_peer import Phase as Phase
from ._server_peer import ServerPeer as ServerPeer
from ._stateless import is_stateless as is_stateless
from ._stateless import read_stateless as read_stateless
from ._stateless import unsupported as unsupported
from ._subscriptions import ACKNOWLEDGED as ACKNOWLEDGED
from ._subscriptions import LIST_CHANGED as LIST_CHANGED
from ._subscriptions import RESOURCE_UPDATED as RESOURCE_UPDATED
from ._subscriptions import TASK_CHANGED as TASK_CHANGED
from ._subscriptions import Listening as Listening
from ._subscriptions import SubscriptionNotice as SubscriptionNotice
from ._subscriptions import Subscriptions as Subscriptions

_LATE = {
    "._client_peer": "ClientPeer",
}

if _TYPE_CHECKING:
    from ._client_peer import ClientPeer as ClientPeer
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)

"""The call of a task as JSON: another node can run it from that."""

from typing import Any

import attrs

from ..._value import JSONMapping, JSONObject
from ...jsonrpc import Request
from ...protocol import STATELESS, Dispatch, Envelope, Origin
from ...types import Principal
from .._server_request import ServerRequest
from ..asking._live import EarlierRun
from ..asking._record import Record

#: Params of a retry. The answers and steps of earlier rounds are stored by themselves.
_OF_RETRY = ("inputResponses", "requestState")


@attrs.define
class StoredRun:
    """What an earlier run of the handler has left; an `EarlierRun`.

    Attributes:
        responses: As in `EarlierRun`.
        state: As in `EarlierRun`.
        record: As in `EarlierRun`.
    """

    responses: JSONMapping
    state: str | None
    record: Record


def store_call(request: ServerRequest, before: EarlierRun | None) -> JSONObject:
    """Return a call of a tool as JSON, without its headers, which may have a token.

    Args:
        request: The request of the call.
        before: The asker of the request, if the handler has run there.
    """
    envelope, principal = request.envelope, request.envelope.origin.principal
    params = request.request.params or {}
    caller, run = None, None
    if principal is not None:
        caller = attrs.asdict(principal, recurse=False)
        caller["scopes"] = sorted(principal.scopes)
    if before is not None:
        record = before.record
        steps = [record.answers, record.steps, record.refused]
        run = [before.responses, before.state, steps]
    return {
        "id": request.id,
        "params": {key: value for key, value in params.items() if key not in _OF_RETRY},
        "info": envelope.client_info,
        "capabilities": envelope.client_capabilities,
        "client": envelope.origin.client,
        "caller": caller,
        "run": run,
    }


def read_call(stored: Any) -> tuple[Dispatch, EarlierRun | None]:
    """Return the request of a stored call, and what an earlier run has left."""
    caller, run, params = stored["caller"], stored["run"], stored["params"]
    principal = None if caller is None else Principal(**caller)
    envelope = Envelope(
        STATELESS,
        stored["info"],
        stored["capabilities"],
        log_level=None,
        progress_token=None,
        meta=params.get("_meta", {}),
        origin=Origin(None, principal, stored["client"]),
    )
    before = None if run is None else StoredRun(run[0], run[1], Record(*run[2]))
    return Dispatch(Request(stored["id"], "tools/call", params), envelope), before

"""A conversation with a server in one revision, and the checks for every connection."""

from collections.abc import Mapping
from typing import Final

import trio

from ..._errors import ProtocolError
from ..._util import is_number
from ..._value import JSON, JSONObject
from ...jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, MODERN_CODES
from ...protocol import HANDSHAKE_VERSIONS
from ...types import META_PROTOCOL_VERSION, META_SERVER_INFO, Implementation
from .._rules import Severity
from ..raw import SESSION, Conversation, Exchange, Link
from ._report import Report

#: A method that no server has.
NO_METHOD: Final = "noizu-mcp/no-such-method"
#: A version that no server speaks.
NO_VERSION: Final = "1999-01-01"
#: Seconds for the answer to the probe. Clients do not wait longer either.
PROBE_TIMEOUT: Final = 5.0


class CheckedConversation(Conversation):
    """A conversation whose findings are added to a report.

    Args:
        link: The connection.
        report: Gets the findings.
        patience: Seconds to wait for an answer.
        stateless: True for 2026-07-28, False for the revisions with a handshake.
    """

    def __init__(self, link: Link, report: Report, patience: float, *, stateless: bool) -> None:
        super().__init__(link, patience, stateless=stateless, name="noizu-mcp doctor")
        self.report = report

    async def expect(
        self,
        method: str,
        params: Mapping[str, JSON] | None = None,
        *,
        meta: Mapping[str, JSON] | None = None,
    ) -> Exchange:
        """Send a request that any server must answer, at least with an error."""
        found = await self.ask(method, params, meta=meta)
        self.report.check("silence", found.replied, found.sent, found.seen)
        return found


async def shake_hands(talk: CheckedConversation, patience: float) -> Exchange:
    """Begin a conversation with `initialize`.

    Args:
        talk: The conversation; its version and session are set.
        patience: Seconds for the answer; a command may have to be downloaded first.

    Returns:
        The answer; without a result the server supports no revision with a handshake.
    """
    found = await talk.ask("initialize", talk.greeting(), patience=patience)
    result = found.result
    if result is None:
        return found
    faults = []
    version = result.get("protocolVersion")
    if not isinstance(version, str):
        faults.append("protocolVersion is no text")
    if not isinstance(result.get("capabilities"), dict):
        faults.append("capabilities are no object")
    faults += _info_faults(result.get("serverInfo"))
    talk.report.check("initialize", not faults, found.sent, f"{'; '.join(faults)}: {result}")
    if isinstance(version, str):
        talk.version = version
        is_known = version in HANDSHAKE_VERSIONS
        seen = f"it speaks {version}, which current clients do not"
        talk.report.check("revision", is_known, found.sent, seen, "error")
    talk.session = found.headers.get(SESSION)
    notified = await talk.tell("notifications/initialized")
    if notified.status is not None:
        right = notified.status == 202 and not notified.body
        talk.report.check("notification-status", right, notified.sent, notified.seen)
    return found


def _info_faults(info: JSON) -> list[str]:
    try:
        Implementation.from_wire(info, "serverInfo")
    except ProtocolError as error:
        return [str(error)]
    return []


async def discover(
    talk: CheckedConversation, *, is_alive: bool, start: float = 0.0
) -> JSONObject | None:
    """Begin a conversation of 2026-07-28 with `server/discover`.

    Args:
        talk: The conversation.
        start: Seconds for the server to start, in addition to those for the answer.
        is_alive: True if the server has answered `initialize`; it must then answer this as well.

    Returns:
        The result; None if the server does not support 2026-07-28.
    """
    found = await talk.ask("server/discover", patience=start + min(PROBE_TIMEOUT, talk.patience))
    if is_alive:
        talk.report.check("probe", found.replied, found.sent, found.seen)
    result = found.result
    # Some servers answer every unknown method with an empty result.
    if result is None or not isinstance(result.get("supportedVersions"), list):
        return None
    if talk.version not in result["supportedVersions"]:
        return None
    faults = []
    if not all(isinstance(each, str) for each in result["supportedVersions"]):
        faults.append("supportedVersions are no texts")
    if not isinstance(result.get("capabilities"), dict):
        faults.append("capabilities are no object")
    meta = result.get("_meta")
    if isinstance(meta, dict) and META_SERVER_INFO in meta:
        faults += _info_faults(meta[META_SERVER_INFO])
    talk.report.check("discover", not faults, found.sent, f"{'; '.join(faults)}: {result}")
    check_fields(talk, found)
    return result


def check_fields(talk: CheckedConversation, found: Exchange) -> None:
    """Check the members that some results of 2026-07-28 must have."""
    result = found.result
    if not talk.stateless or result is None:
        return
    lacking = []
    if result.get("resultType") != "complete":
        lacking.append('resultType is not "complete"')
    ttl = result.get("ttlMs")
    if not is_number(ttl) or ttl < 0:
        lacking.append("ttlMs is no number from 0 on")
    if result.get("cacheScope") not in ("public", "private"):
        lacking.append("cacheScope is not public or private")
    talk.report.check("result-fields", not lacking, found.sent, "; ".join(lacking))


async def check_answers(talk: CheckedConversation) -> None:
    """Check the answers to requests that every server knows, and to an unknown one."""
    report = talk.report
    if not talk.stateless:
        found = await talk.expect("ping")
        if found.replied:
            report.check("ping", found.result is not None, found.sent, found.seen)
    found = await talk.expect(NO_METHOD)
    if found.replied:
        is_refused = found.code == METHOD_NOT_FOUND
        # Any other error code works as well: a client continues.
        severity: Severity | None = "warning" if found.error else None
        report.check("unknown-method", is_refused, found.sent, found.seen, severity)
        if talk.stateless and found.status is not None and is_refused:
            report.check("status", found.status == 404, found.sent, found.seen)
    if talk.stateless:
        await _check_envelopes(talk)


async def _check_envelopes(talk: CheckedConversation) -> None:
    report = talk.report
    wrong = await talk.expect("server/discover", meta=talk.envelope(NO_VERSION))
    data = wrong.error.get("data")
    listed = data.get("supported") if isinstance(data, dict) else None
    right = wrong.code in MODERN_CODES and isinstance(listed, list) and talk.version in listed
    report.check(
        "version", right or not wrong.replied, f"{wrong.sent} with version {NO_VERSION}", wrong.seen
    )
    if right and wrong.status is not None:
        report.check("status", wrong.status == 400, wrong.sent, wrong.seen)
    bare = {META_PROTOCOL_VERSION: talk.version}
    wrong = await talk.expect("server/discover", meta=bare)
    right = wrong.code == INVALID_PARAMS or not wrong.replied
    report.check("envelope", right, f"{wrong.sent} without clientCapabilities", wrong.seen)


async def check_busy(
    talk: CheckedConversation, params: Mapping[str, JSON], seconds: float
) -> Exchange:
    """Call a tool, and send another request while it runs.

    Args:
        talk: The conversation.
        params: The params of `tools/call`.
        seconds: Seconds for the answer to the other request.

    Returns:
        The exchange of the call.
    """
    calls: list[Exchange] = []

    async def call(task_status: trio.TaskStatus[None]) -> None:
        # It runs from here to its first wait, for room to write, so its request is sent first.
        task_status.started()
        calls.append(await talk.ask("tools/call", params))

    async with trio.open_nursery() as nursery:
        await nursery.start(call)
        other = await talk.ask(talk.light_method, patience=seconds)
        # If the call has ended in the meantime, nothing is proved.
        if not calls:
            sent = f"{other.sent} during tools/call"
            talk.report.check("busy", other.answer is not None, sent, other.seen)
    return calls[0]

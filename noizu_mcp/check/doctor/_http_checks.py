"""Checks of a server over HTTP: who may call it, sessions, statuses, headers."""

import ipaddress
import json
import re
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from ..._value import JSONObject
from ...jsonrpc import HEADER_MISMATCH
from .._rules import Severity
from ..raw import SESSION, VERSION, Exchange, WebLink
from ._checked_conversation import NO_VERSION, CheckedConversation
from ._report import Report

#: A site that no server allows.
FOREIGN: Final = "noizu-mcp-doctor.invalid"
#: Minimum seconds before the expiry of a certificate: time to renew it.
MIN_VALIDITY: Final = 14 * 24 * 3600.0
#: Minimum characters of a session id: a shorter one can be guessed; a UUID has 32.
MIN_SESSION: Final = 16
#: A session that no server has.
NO_SESSION: Final = "noizu-mcp-doctor-no-such-session"
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_STREAM: Final = "text/event-stream"


def is_local(url: str) -> bool:
    """Tell whether a URL is on this machine or in a private network."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local"))
    return address.is_loopback or address.is_private


def check_transport(link: WebLink, report: Report) -> None:
    """Check how the bytes travel."""
    parts = urlsplit(link.url)
    if parts.scheme == "http":
        report.check("tls", is_local(link.url), "any request", f"{parts.scheme}://{parts.netloc}")
    if link.certificate_end is not None:
        left = link.certificate_end - time.time()
        seen = f"the certificate ends in {left / 86400:.1f} days"
        report.check("certificate", left > MIN_VALIDITY, "a TLS handshake", seen)


async def check_callers(
    link: WebLink, report: Report, message: JSONObject, headers: Mapping[str, str], patience: float
) -> None:
    """Check that the server refuses other origins and other host names.

    Args:
        link: The connection.
        report: Gets the findings.
        message: A request that the server answers.
        headers: The headers of this request.
        patience: Seconds to wait.
    """
    local = is_local(link.url)
    body = json.dumps(message).encode()
    base = {"content-type": "application/json", "accept": f"application/json, {_STREAM}", **headers}
    origin = f"{urlsplit(link.url).scheme}://{FOREIGN}"

    async def post(name: str, value: str) -> Exchange:
        found = await link.send("POST", {**base, name: value}, patience, body=body)
        await _leave(link, found, base, patience)
        found.sent = f"{message['method']} with {name.title()}: {value}"
        return found

    found = await post("origin", origin)
    # A public server may be meant for every site; a local one never is.
    severity: Severity | None = None if local else "warning"
    report.check("origin", not _accepted(found), found.sent, found.seen, severity)
    if local:
        named = await post("host", FOREIGN)
        report.check("host", not _accepted(named), named.sent, named.seen)
    asked = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type, mcp-protocol-version",
    }
    preflight = await link.send("OPTIONS", asked, patience, sent="a CORS preflight")
    allowed = preflight.headers.get("access-control-allow-origin")
    with_credentials = preflight.headers.get("access-control-allow-credentials") == "true"
    everyone = allowed in ("*", origin) and (preflight.status or 500) < 300
    sent, seen = f"{preflight.sent} from {origin}", f"Access-Control-Allow-Origin: {allowed}"
    report.check("cors", not everyone or not (local or with_credentials), sent, seen)
    if everyone and _accepted(found) and SESSION in found.headers:
        exposed = found.headers.get("access-control-expose-headers", "")
        right = SESSION in exposed.lower() or "*" in exposed
        seen = f"Access-Control-Expose-Headers: {exposed}"
        report.check("cors-headers", right, found.sent, seen)


def _accepted(found: Exchange) -> bool:
    return found.status is not None and 200 <= found.status < 300


async def _leave(
    link: WebLink, found: Exchange, headers: Mapping[str, str], patience: float
) -> None:
    """End a session that a check has begun by accident."""
    session = found.headers.get(SESSION)
    if session is not None:
        await link.send("DELETE", {**headers, SESSION: session}, patience)


async def check_session(talk: CheckedConversation, link: WebLink) -> None:
    """Check the HTTP side of a conversation with a handshake, and end its session."""
    report, patience = talk.report, talk.patience
    base = {VERSION: talk.version}
    if talk.session is not None:
        base[SESSION] = talk.session
    wrong = await talk.ask("ping", headers={VERSION: NO_VERSION})
    sent = f"{wrong.sent} with MCP-Protocol-Version: {NO_VERSION}"
    report.check("version-header", wrong.status == 400, sent, wrong.seen)
    stream = await link.send("GET", {**base, "accept": _STREAM}, patience, sent="GET")
    kind = stream.media_type
    right = stream.status == 405 or (stream.status == 200 and kind == _STREAM)
    report.check("get", right, stream.sent, f"{stream.seen} {kind}")
    if talk.session is None:
        return
    visible = _VISIBLE.fullmatch(talk.session)
    report.check("session-id", visible, "initialize", f"Mcp-Session-Id: {talk.session!r}")
    long = len(talk.session) >= MIN_SESSION
    seen = f"an id of {len(talk.session)} characters"
    report.check("session-secret", long, "initialize", seen)
    wrong = await talk.ask("ping", headers={SESSION: None})
    report.check("session-missing", wrong.status == 400, f"{wrong.sent} without it", wrong.seen)
    wrong = await talk.ask("ping", headers={SESSION: NO_SESSION})
    sent = f"{wrong.sent} with an unknown Mcp-Session-Id"
    report.check("session-unknown", wrong.status == 404, sent, wrong.seen)
    gone = await link.send("DELETE", base, patience, sent="DELETE")
    if gone.status != 405:
        report.check("session-end", _accepted(gone), gone.sent, gone.seen)
    if _accepted(gone):
        late = await talk.ask("ping")
        report.check("session-end", late.status == 404, f"{late.sent} after DELETE", late.seen)


async def find_elsewhere(link: WebLink, patience: float) -> str:
    """Look for a server where clients would not find it.

    Returns:
        The end of a message about a URL without a server; empty if nothing was found.
    """
    stream = await link.send("GET", {"accept": _STREAM}, patience)
    if stream.status == 200 and stream.media_type == _STREAM:
        old = "the transport HTTP+SSE of 2024-11-05"
        return f"; GET opens an event stream, as in {old}: serve Streamable HTTP"
    parts = urlsplit(link.url)
    if parts.path in ("", "/"):
        place = f"{parts.scheme}://{parts.netloc}/mcp"
        body = b'{"jsonrpc": "2.0", "id": 0, "method": "ping"}'
        base = {"content-type": "application/json", "accept": f"application/json, {_STREAM}"}
        found = await link.send("POST", base, patience, url=place, body=body)
        if found.status not in (None, 404, 405):
            return f"; there may be a server at {place}"
    return ""


async def check_headers(talk: CheckedConversation) -> None:
    """Check that the headers of 2026-07-28 are compared with the body."""
    wrong = await talk.ask("server/discover", headers={"mcp-method": "tools/list"})
    right = wrong.status == 400 and wrong.code == HEADER_MISMATCH
    talk.report.check("headers", right, f"{wrong.sent} with Mcp-Method: tools/list", wrong.seen)

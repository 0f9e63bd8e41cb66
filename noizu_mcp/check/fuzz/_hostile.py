"""Hostile messages: malformed, unknown and oversized ones, and how a server may react."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from ..._value import JSON, JSONObject
from ...jsonrpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from ..raw import Conversation
from ._case import Replies
from ._fuzzed_server import FuzzedServer

#: Seconds to wait for an optional answer.
OPTIONAL: Final = 0.02
#: How a server may react: with an error; with an error, whose id may be null; with an error or no
#: answer; with no answer; in any way, if it stays alive.
Reaction = Literal["error", "rejection", "refusal", "nothing", "anything"]

_NOWHERE: Final = "noizu-mcp/no-such-method"


class Hostile(NamedTuple):
    """One message.

    Attributes:
        name: Its name.
        reaction: How a server may react.
        make: Makes the message, or bytes that are not a message.
        codes: The codes that the error may have; empty for any.
        capability: The capability that a server must have; empty for every server.
        handshake_only: True if the message does not exist in 2026-07-28.
    """

    name: str
    reaction: Reaction
    make: Callable[[Conversation], JSONObject | bytes]
    codes: tuple[int, ...] = ()
    capability: str = ""
    handshake_only: bool = False


def _request(method: JSON, params: JSON = None, **members: JSON) -> Callable[..., JSONObject]:
    def make(talk: Conversation) -> JSONObject:
        message: JSONObject = {"jsonrpc": "2.0", "id": talk.new_id(), "method": method}
        full = params
        if talk.stateless and isinstance(params, dict | None):
            own = (params or {}).get("_meta", {})
            full = {**(params or {}), "_meta": {**talk.envelope(), **own}}
        if full is not None:
            message["params"] = full
        return {**message, **members}

    return make


def _notification(method: str, params: JSON = None) -> Callable[..., JSONObject]:
    def make(talk: Conversation) -> JSONObject:
        message = _request(method, params)(talk)
        del message["id"]
        return message

    return make


def _text(text: str) -> Callable[..., bytes]:
    def make(talk: Conversation) -> bytes:
        del talk
        return text.encode("utf-8", "surrogatepass")

    return make


_CURSOR: Final = (INVALID_PARAMS, INVALID_REQUEST)

#: Every message.
HOSTILE: Final = (
    Hostile("unknown method", "error", _request(_NOWHERE), (METHOD_NOT_FOUND,)),
    Hostile("method with NUL", "error", _request("tools\x00list")),
    Hostile("method with half a surrogate pair", "anything", _request("tools/\ud800")),
    # Decoders may refuse it (RFC 8259 section 8.2); then the id is unknown.
    Hostile("half a surrogate pair in params", "rejection", _request(_NOWHERE, {"text": "\ud800"})),
    Hostile("long method", "error", _request("m" * 5000)),
    Hostile("method that is a number", "refusal", _request(7)),
    Hostile("params that are a list", "refusal", _request("tools/list", ["x"])),
    Hostile("params that are a text", "refusal", _request("tools/list", "x")),
    Hostile("no version of JSON-RPC", "refusal", _request(_NOWHERE, jsonrpc="1.0")),
    Hostile("id that is an object", "refusal", _request(_NOWHERE, id={"a": 1})),
    Hostile("id that is a list", "refusal", _request(_NOWHERE, id=[[]])),
    Hostile("id that is a fraction", "anything", _request(_NOWHERE, id=0.5)),
    Hostile("id that is null", "refusal", _request(_NOWHERE, id=None)),
    Hostile("id that is large", "anything", _request(_NOWHERE, id=10**40)),
    Hostile("unknown tool", "error", _request("tools/call", {"name": _NOWHERE}), (), "tools"),
    Hostile("call without a name", "error", _request("tools/call", {}), (), "tools"),
    Hostile("name that is a list", "error", _request("tools/call", {"name": []}), (), "tools"),
    Hostile(
        "cursor that is a number", "error", _request("tools/list", {"cursor": 7}), _CURSOR, "tools"
    ),
    Hostile(
        "URI that is a number", "error", _request("resources/read", {"uri": 7}), (), "resources"
    ),
    Hostile("unknown prompt", "error", _request("prompts/get", {"name": _NOWHERE}), (), "prompts"),
    Hostile(
        "completion of nothing", "error", _request("completion/complete", {}), (), "completions"
    ),
    Hostile(
        "progress token that is an object",
        "anything",
        _request("tools/list", {"_meta": {"progressToken": {}}}),
        (),
        "tools",
    ),
    Hostile("unknown notification", "nothing", _notification("notifications/noizu-mcp")),
    Hostile(
        "cancellation of an unknown request",
        "nothing",
        _notification("notifications/cancelled", {"requestId": "noizu-mcp"}),
    ),
    Hostile("cancellation of nothing", "nothing", _notification("notifications/cancelled")),
    Hostile(
        "cancellation by an object",
        "nothing",
        _notification("notifications/cancelled", {"requestId": {}}),
    ),
    Hostile(
        "answer to no request", "nothing", _text('{"jsonrpc":"2.0","id":"noizu-mcp","result":{}}')
    ),
    Hostile(
        "error to no request",
        "nothing",
        _text('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}'),
    ),
    Hostile("second initialize", "anything", _request("initialize", {}), handshake_only=True),
    Hostile("half a message", "anything", _text('{"jsonrpc":"2.0","id":1,"method":')),
    Hostile("empty list", "anything", _text("[]")),
    Hostile("list of a number", "anything", _text("[1]")),
    Hostile("null", "anything", _text("null")),
    Hostile("number", "anything", _text("42")),
    Hostile("text", "anything", _text('"text"')),
    Hostile("empty object", "anything", _text("{}")),
    Hostile("bytes that are no UTF-8", "anything", lambda _: b'{"jsonrpc":"2.0","x":"\xff\xfe"}'),
    Hostile("deep nesting", "anything", _text("[" * 50_000)),
    Hostile(
        "deep nesting in a request",
        "anything",
        _text(
            '{"jsonrpc":"2.0","method":"noizu-mcp","params":{"a":' + "[" * 5000 + "]" * 5000 + "}}"
        ),
    ),
    Hostile(
        "large number",
        "anything",
        _text('{"jsonrpc":"2.0","method":"noizu-mcp","params":{"a":' + "9" * 10_000 + "}}"),
    ),
)
_BY_NAME: Final = {each.name: each for each in HOSTILE}


async def attack(server: FuzzedServer, name: str, *, stateless: bool) -> tuple[str | None, Replies]:
    """Send one hostile message.

    Args:
        server: The server.
        name: The name of the message.
        stateless: The era.

    Returns:
        The fault of the reaction, or None; and the outcome.

    Raises:
        KeyError: The name is unknown.
    """
    hostile = _BY_NAME[name]
    found = await server.connect(stateless=stateless)
    message: JSONObject | bytes = {}
    if found is not None:
        message = hostile.make(found.talk)
        found.link.receiver.nameless = None
    patience = server.timeout
    if hostile.reaction == "rejection":
        patience = server.quick
    elif hostile.reaction != "error" and server.is_stream:
        # Over HTTP every request is answered, at least with a status.
        patience = OPTIONAL
    outcome = await server.post(message, stateless=stateless, patience=patience)
    if hostile.reaction == "rejection" and found is not None and not outcome.exchange.answer:
        outcome.exchange.answer = found.link.receiver.nameless
    return _judge(hostile, outcome), outcome


def _judge(hostile: Hostile, outcome: Replies) -> str | None:
    found = outcome.exchange
    if found.ended or not outcome.responsive:
        return found.failure or "the server answers no more"
    if found.status is not None and found.status >= 500:
        return f"HTTP {found.status}"
    if hostile.reaction in ("error", "rejection"):
        return _judge_error(hostile, outcome)
    if hostile.reaction != "anything" and outcome.faults:
        return ": ".join(outcome.faults[0])
    is_accepted = found.result is not None and not outcome.refused
    return f"a result: {found.seen}" if hostile.reaction == "refusal" and is_accepted else None


def _judge_error(hostile: Hostile, outcome: Replies) -> str | None:
    found = outcome.exchange
    if outcome.faults:
        return ": ".join(outcome.faults[0])
    if not found.replied:
        return "no answer"
    is_accepted = found.result is not None and not outcome.refused
    is_other = bool(hostile.codes) and found.code not in (None, *hostile.codes)
    return found.seen if is_accepted or is_other else None

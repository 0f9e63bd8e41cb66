"""One request and what came back, and the shape of messages."""

import json
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import attrs

from ..._value import JSON, JSONObject
from ...jsonrpc import METHOD_NOT_FOUND

#: Bytes of a body that a message shows.
SHOWN: Final = 1000
#: Methods that a server may always call.
_ALWAYS = ("ping",)
#: Maximum notifications that are kept; older ones are dropped.
MAX_NOTIFICATIONS: Final = 1000
#: Maximum answers that are kept; a second answer to an older request matches no request.
MAX_ANSWERS: Final = 1000


#: A message, or several in a list, as 2025-03-26 allows.
RawMessage = JSONObject | list[JSONObject]


class Notes(Protocol):
    """The place where connections report faults of messages."""

    def check(self, rule: str, holds: object, sent: str, seen: str) -> bool:
        """Record whether a rule holds.

        Args:
            rule: The name of the rule: `message`, `uninvited`, `stdout` or `content-type`.
            holds: True if the server keeps the rule.
            sent: What the server was answering, briefly.
            seen: What was received.

        Returns:
            `holds` as a bool.
        """


@attrs.define
class Exchange:
    """A message to a server and its answer.

    Attributes:
        sent: What was sent, briefly.
        answer: The answer as decoded JSON; None without an answer.
        seconds: The time from the first byte to the answer.
        ended: True if the connection ended before the answer.
        status: The HTTP status; None over stdio.
        headers: The HTTP headers of the answer.
        body: The HTTP body, unless it was an event stream.
        failure: Why there is no answer, for messages; empty if unknown.
        event_id: The id of the last event of an event stream; empty if it had none.
        retry: Seconds after which the stream is requested again, as given by the server.
    """

    sent: str
    answer: JSONObject | None = None
    seconds: float = 0.0
    ended: bool = False
    status: int | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = b""
    failure: str = ""
    event_id: str = ""
    retry: float = 0.0

    @property
    def result(self) -> JSONObject | None:
        """The result; None for an error or without an answer."""
        found = None if self.answer is None else self.answer.get("result")
        return found if isinstance(found, dict) else None

    @property
    def error(self) -> JSONObject:
        """The error; empty for a result, or without an answer."""
        found = None if self.answer is None else self.answer.get("error")
        return found if isinstance(found, dict) else {}

    @property
    def code(self) -> int | None:
        """The code of the error; None without an error."""
        found = self.error.get("code")
        return found if type(found) is int else None

    @property
    def replied(self) -> bool:
        """True if the server answered, at least with an HTTP status that refuses the request."""
        return self.answer is not None or (self.status or 0) >= 400

    @property
    def media_type(self) -> str:
        """The media type of the HTTP body, in lower case; empty without one."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def seen(self) -> str:
        """A description of the answer, for messages."""
        if self.answer is not None:
            part = self.error or self.answer.get("result")
            text = json.dumps(part, ensure_ascii=False)
        else:
            text = self.failure or self.body[:SHOWN].decode(errors="replace")
        if self.status is None:
            return text or "no answer"
        return f"HTTP {self.status} {text}".rstrip()


class Link(Protocol):
    """A connection to a server, for one message at a time or several."""

    async def exchange(
        self, message: RawMessage, headers: Mapping[str, str], patience: float
    ) -> Exchange:
        """Send a message and wait for the answer, if it is a request.

        Args:
            message: The message; for a list of messages, the answer to its first request is
                returned once all have arrived.
            headers: HTTP headers of the protocol; not used over stdio.
            patience: Seconds to wait.
        """


def fault_of(message: JSON) -> str | None:
    """Describe the fault in the shape of a message; None if it is valid JSON-RPC 2.0.

    Args:
        message: Decoded JSON.
    """
    if not isinstance(message, dict):
        return f"a {type(message).__name__}, not an object"
    if message.get("jsonrpc") != "2.0":
        return 'it lacks "jsonrpc": "2.0"'
    if "method" in message:
        right = isinstance(message["method"], str) and isinstance(message.get("params", {}), dict)
        return None if right else "its method is no text, or its params are no object"
    if ("result" in message) == ("error" in message):
        return "it has neither a method, nor exactly one of result and error"
    if "error" in message:
        return _error_fault(message["error"])
    return None if isinstance(message["result"], dict) else "its result is no object"


def _error_fault(error: JSON) -> str | None:
    if not isinstance(error, dict):
        return "its error is no object"
    if type(error.get("code")) is not int:
        return "the code of its error is no integer"
    return None if isinstance(error.get("message"), str) else "its error has no message"


def method_of(message: RawMessage) -> str:
    """Return the method of a message, for texts."""
    first = message[0] if isinstance(message, list) else message
    return str(first.get("method"))


def requests_of(message: RawMessage) -> list[JSONObject]:
    """Return the requests in a message or a list."""
    messages = message if isinstance(message, list) else [message]
    return [each for each in messages if "id" in each]


class Receiver:
    """Sorts the messages of a server: answers, its own requests, notifications.

    Args:
        notes: Gets their faults.

    Attributes:
        notifications: The notifications of the server, in order.
        takes_lists: True if a list is several messages, as on 2025-03-26.
        nameless: The last error without an id: it answers an unreadable message.
    """

    def __init__(self, notes: Notes) -> None:
        self.notifications: deque[JSONObject] = deque(maxlen=MAX_NOTIFICATIONS)
        self.nameless: JSONObject | None = None
        self.takes_lists = False
        self._notes = notes
        self._answers: dict[tuple[str, str], JSONObject | None] = {}

    def expect(self, id_: JSON) -> None:
        """Expect an answer to a request."""
        self._answers[_key(id_)] = None
        if len(self._answers) > MAX_ANSWERS:
            del self._answers[next(iter(self._answers))]

    def answer_to(self, id_: JSON) -> JSONObject | None:
        """Return the answer to a request, if it has arrived."""
        return self._answers[_key(id_)]

    def has_answers(self, ids: Iterable[JSON]) -> bool:
        """Tell whether the answers to all given requests have arrived."""
        return all(self.answer_to(each) is not None for each in ids)

    def take(self, text: bytes, where: str) -> JSONObject | None:
        """Handle one message.

        Args:
            text: Its bytes.
            where: What the server was answering, for the report.

        Returns:
            The answer to send back if it is a request of the server; None for other messages, and
            for a list.
        """
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            self._notes.check("message", False, where, text.decode(errors="replace"))
            return None
        if self.takes_lists and isinstance(message, list) and message:
            for each in message:
                self._take(each, json.dumps(each).encode(), where)
            return None
        return self._take(message, text, where)

    def _take(self, message: JSON, text: bytes, where: str) -> JSONObject | None:
        fault = fault_of(message)
        shown = f"{fault}: {text.decode(errors='replace')}"
        if not self._notes.check("message", fault is None, where, shown):
            # An answer that can be identified is still used: it may reveal more.
            if isinstance(message, dict) and _key(message.get("id")) in self._answers:
                self._answers[_key(message["id"])] = message
            return None
        if "method" not in message:
            self._take_answer(message, where)
            return None
        if "id" in message:
            return self._take_request(message, where)
        self.notifications.append(message)
        return None

    def _take_answer(self, message: JSONObject, where: str) -> None:
        key = _key(message.get("id"))
        if key not in self._answers:
            stray = "result" in message or message.get("id") is not None
            self.nameless = self.nameless if stray else message
            self._notes.check("message", not stray, where, f"an answer to no request: {message}")
        elif self._notes.check(
            "message", self._answers[key] is None, where, f"a second answer: {message}"
        ):
            self._answers[key] = message

    def _take_request(self, message: JSONObject, where: str) -> JSONObject:
        method, answer = message["method"], {"jsonrpc": "2.0", "id": message["id"]}
        if self._notes.check("uninvited", method in _ALWAYS, where, f"the request {method}"):
            return {**answer, "result": {}}
        return {**answer, "error": {"code": METHOD_NOT_FOUND, "message": "not declared"}}


def _key(id_: JSON) -> tuple[str, str]:
    # 1, 1.0 and True are equal in Python, but are different ids; lists have no hash.
    return (type(id_).__name__, str(id_))

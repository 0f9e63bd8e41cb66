"""Bodies drawn from a grammar of JSON-RPC messages with mistakes, over a real connection.

Each has one answer, with the status and the code of the specification, and the server goes on.
Sources: JSON-RPC 2.0 section 5.1; 2025-11-25 `basic/transports`; 2026-07-28
`basic/transports/streamable-http`.
"""

import copy
import http.client
import json
import logging
import queue
import threading
from collections import Counter
from functools import partial

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.transports.http import serve_http

from ...kit.messages import BOTH, META, NAMED, message
from .shop import Shop

ARRAYS, HANDSHAKE, STATELESS = "2025-03-26", "2025-11-25", "2026-07-28"
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH = -32020
#: The errors of 2026-07-28 with their own status.
STATUSES = {METHOD_NOT_FOUND: 404, HEADER_MISMATCH: 400, -32021: 400, -32022: 400}
DEPTH, DIGITS = 128, 4300
PATIENCE = 60
#: Stands for the value of a body that is not JSON.
UNREAD = object()

pytestmark = pytest.mark.slow

CLIENT = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
REQUESTS = [
    message("tools/call", {"name": "echo", "arguments": {"text": "hi"}}, 1),
    message("tools/call", {"name": "local", "arguments": {"region": "r", "count": 1}}, "two"),
    message("tools/list", {"cursor": "x"}, 3),
    message("resources/read", {"uri": "board://all"}, 4),
    message("prompts/get", {"name": "none", "arguments": {"a": "b"}}, 5),
    message("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}}, 6),
    message("resources/templates/list", None, 7),
    message("unknown/method", {"deep": {"er": [1, {"x": None}]}}, 8),
]
BEFORE_STATELESS = [
    message("ping", None, 9),
    message("logging/setLevel", {"level": "info"}, 10),
    message("initialize", {"protocolVersion": HANDSHAKE, **CLIENT}, 11),
    message("resources/subscribe", {"uri": "board://all"}, 12),
    message("notifications/cancelled", {"requestId": 1, "reason": "none"}),
    message("notifications/progress", {"progressToken": 1, "progress": 0.5}),
    {"jsonrpc": "2.0", "id": 13, "result": {"a": 1}},
    {"jsonrpc": "2.0", "id": 14, "error": {"code": 1, "message": "no"}},
]


def _nested(deep):
    value = 0
    for _ in range(deep):
        value = [value]
    return value


#: Values that are not valid anywhere.
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2),
    st.sampled_from([2**53, -(2**63), 10**30, 1e308, 0.1, "", "2.0", "1", "\0", "é\U0001f600"]),
    st.sampled_from([[], {}, [[]], [None], {"": None}, {"_meta": 1}, "\ud800", "x" * 70_000]),
    st.builds(_nested, st.sampled_from([5, DEPTH - 4, DEPTH + 1])),
    st.text(max_size=5),
).map(copy.deepcopy)  # a list of samples has each value only once
NAMES = [
    "id",
    "method",
    "jsonrpc",
    "params",
    "result",
    "error",
    "name",
    "arguments",
    "uri",
    "_meta",
]


@st.composite
def _mistaken(draw, message):
    """Draw a message with up to three mistakes in its members."""
    value = copy.deepcopy(message)
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
        place = value
        while inner := [each for each in place.values() if type(each) is dict and each]:
            if draw(st.booleans()):
                break
            place = draw(st.sampled_from(inner))
        if draw(st.booleans()):
            place[draw(st.sampled_from(NAMES) | st.text(max_size=3))] = draw(ODD)
        else:
            name = draw(st.sampled_from(sorted(place)))
            if draw(st.booleans()):
                place[name] = draw(ODD)
            elif len(value) > 1 or place is not value:
                del place[name]
    return value


@st.composite
def _written(draw, value):
    """Draw the bytes of a value, with at most one mistake in its text."""
    data = json.dumps(value).encode()
    how = draw(st.sampled_from(["fine", "fine", "fine", "bytes", "cut", "name", "mark", "number"]))
    at = draw(st.integers(0, len(data)))
    if how == "bytes":
        odd = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\0", b"\n", b",", b"]", b"\\u", b'"', b"{"]
        return data[:at] + draw(st.sampled_from(odd)) + data[at:]
    if how == "cut":
        return data[:at]
    if how == "name":
        twice = [b'{"id":5,', b'{"method":1,', b'{"jsonrpc":"1.0",', b'{"params":[],', b'{"a":{},']
        return data.replace(b"{", draw(st.sampled_from(twice)), 1)
    if how == "mark":
        marks = [b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf", b"\xff\xfe", b" \r\n\t", b"\x0c"]
        return draw(st.sampled_from(marks)) + data
    if how == "number":
        odd = [b"NaN", b"-Infinity", b"1e999", b"01", b"9" * DIGITS, b"9" * (DIGITS + 1), b"1E2"]
        odd.append(b"[" * 100_000 + b"]" * 100_000)
        return data.replace(b"1", draw(st.sampled_from(odd)), 1)
    return data


def _read(data):
    """Read a body as the specification says; raise ValueError if it cannot be read."""

    def refuse(name):
        raise ValueError(name)

    def finite(text):
        if abs(float(text)) == float("inf"):
            raise ValueError(text)
        return float(text)

    try:
        text = data.decode("utf-8-sig")
        value = json.loads(text, parse_constant=refuse, parse_float=finite)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError from None
    if _depth(value) > DEPTH:
        raise ValueError
    return value


def _depth(value):
    deep = 0
    level = [value]
    while level := [each for each in level if type(each) in (list, dict)]:
        deep += 1
        level = [x for each in level for x in (each.values() if type(each) is dict else each)]
    return deep


def _is_id(value):
    return type(value) in (str, int)


def _kind(value):
    """Return the kind of a body or of a member of an array: one of four, or none."""
    if type(value) is not dict or value.get("jsonrpc") != "2.0":
        return None
    if "method" in value:
        fine = type(value["method"]) is str and type(value.get("params")) in (dict, type(None))
        # A null differs from a missing member, except for params.
        if "id" not in value:
            return "notification" if fine else None
        return "request" if fine and _is_id(value["id"]) else None
    error = value.get("error")
    if "error" in value:
        fine = type(error) is dict and "result" not in value
        fine = fine and type(error.get("code")) is int and type(error.get("message")) is str
        # An error may answer a message that could not be read.
        return "error" if fine else None
    fine = _is_id(value.get("id")) and type(value.get("result")) is dict
    return "result" if fine else None


def _is_unanswered(value):
    """Tell whether an invalid value looks like a response or notification, which get no answer."""
    if type(value) is not dict:
        return False
    if "method" in value:
        is_named = type(value["method"]) is str and value.get("jsonrpc") == "2.0"
        return is_named and "id" not in value
    return not {"result", "error"}.isdisjoint(value)


class Caller:
    """Sends bodies on one connection after the other.

    Attributes:
        failures: Errors in the log of the server.
    """

    def __init__(self, port):
        self.failures = []
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.sessions = {version: self._begin(version) for version in (ARRAYS, HANDSHAKE)}

    def _begin(self, version):
        params = {"protocolVersion": version, **CLIENT}
        begun = self.post(json.dumps(message("initialize", params, 0)).encode(), {})
        headers = {"mcp-session-id": begun.headers["mcp-session-id"]}
        headers["mcp-protocol-version"] = version
        ready = json.dumps(message("notifications/initialized")).encode()
        assert self.post(ready, headers).status == 202
        return headers

    def post(self, body, headers):
        """Send a body; return its response with the messages in it."""
        given = {"content-type": "application/json", "accept": BOTH, **headers}
        given = {name: value for name, value in given.items() if value is not None}
        self._connection.request("POST", "/mcp", body, given)
        answer = self._connection.getresponse()
        answer.text = answer.read()
        answer.messages = _messages(answer)
        return answer

    def check(self, body, headers):
        """Send a body, and then a well-formed one, which must be answered."""
        answer = self.post(body, headers)
        after = self.post(
            json.dumps(message("ping", None, "after")).encode(), self.sessions[ARRAYS]
        )
        assert (after.status, after.messages[0]["id"]) == (200, "after")
        assert self.failures == []
        assert answer.status < 500
        assert b"Traceback" not in answer.text
        assert b'File \\"' not in answer.text
        for each in answer.messages:
            assert each["jsonrpc"] == "2.0"
            assert ("result" in each) != ("error" in each) or "method" in each
        return answer


def _messages(answer):
    """List the messages of a response: an object, an array or a stream; may be empty."""
    if not answer.text:
        return []
    if answer.headers["content-type"] != "text/event-stream":
        found = json.loads(answer.text)
        return found if type(found) is list else [found]
    lines = answer.text.decode().splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip()]


@pytest.fixture(scope="module")
def caller():
    """Serve in a separate thread."""
    started, failures = queue.Queue(), []

    async def main():
        async with trio.open_nursery() as nursery:
            host = await nursery.start(partial(serve_http, Shop(), port=0))
            started.put((host, trio.lowlevel.current_trio_token()))

    class Heard(logging.Handler):
        def emit(self, record):
            failures.append(self.format(record))

    heard = Heard(logging.ERROR)
    logging.getLogger("noizu_mcp").addHandler(heard)
    thread = threading.Thread(target=trio.run, args=[main])
    thread.start()
    host, token = started.get(timeout=PATIENCE)
    made = Caller(host.port)
    made.failures = failures
    yield made
    made._connection.close()
    trio.from_thread.run_sync(host.stop, trio_token=token)
    thread.join(PATIENCE)
    logging.getLogger("noizu_mcp").removeHandler(heard)


def _refusal(answer):
    """Return the code of the one error that answers a body as a whole."""
    assert answer.status == 400
    (error,) = answer.messages
    return error["error"]["code"]


def _read_or_refused(answer, body):
    """Return the value of a body; if it is not JSON, check the refusal and return UNREAD."""
    try:
        return _read(body)
    except ValueError:
        assert _refusal(answer) == PARSE_ERROR
        return UNREAD


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_one_answer_to_a_body_of_a_session(caller, data):
    """Every mistake has one answer, and only a request is answered with a result."""
    body = data.draw(
        st.sampled_from(REQUESTS + BEFORE_STATELESS).flatmap(_mistaken).flatmap(_written)
    )
    answer = caller.check(body, caller.sessions[HANDSHAKE])
    value = _read_or_refused(answer, body)
    if value is UNREAD:
        return
    kind = _kind(value)
    if kind is None:
        assert _refusal(answer) == INVALID_REQUEST
    elif kind == "request":
        *_, last = answer.messages
        assert last["id"] == value["id"]
        assert answer.status == 200 or "error" in last
    else:
        assert answer.status == 202 or (answer.status == 400 and kind in ("result", "error"))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_one_answer_to_a_body_of_2026_07_28(caller, data):
    """The status matches the error."""
    base = copy.deepcopy(data.draw(st.sampled_from(REQUESTS)))
    base["params"] = {**base.get("params", {}), "_meta": META}
    body = data.draw(_mistaken(base).flatmap(_written))
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": base["method"]}
    if base["method"] in NAMED:
        headers["mcp-name"] = base["params"][NAMED[base["method"]]]
    if base["params"].get("name") == "local":
        headers.update({"mcp-param-region": "r", "mcp-param-count": "1"})
    answer = caller.check(body, headers)
    value = _read_or_refused(answer, body)
    if value is UNREAD:
        return
    kind = _kind(value)
    if kind == "notification":
        assert (answer.status, answer.text) == (202, b"")
    elif kind != "request":
        assert _refusal(answer) == INVALID_REQUEST
    else:
        *_, last = answer.messages
        assert last["id"] == value["id"]
        code = last.get("error", {}).get("code", 0)
        assert answer.status == STATUSES.get(code, answer.status)
        assert answer.status in ((200,) if not code else (200, 400, 404))
        if value["method"] != base["method"]:
            # Without params it is wrong in two ways.
            assert (answer.status, code) in [(400, HEADER_MISMATCH), (400, INVALID_PARAMS)]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_one_answer_to_an_array(caller, data):
    """On 2025-03-26 each request and each mistake is answered; other revisions refuse it all."""
    base = st.sampled_from([each for each in REQUESTS if each["id"] != 1] + BEFORE_STATELESS)
    values = data.draw(st.lists(base.flatmap(_mistaken) | ODD, max_size=5))
    for number, value in enumerate(values):
        if type(value) is dict and type(value.get("id")) is int:
            value["id"] = number
    body = data.draw(_written(values))
    refused = caller.check(body, caller.sessions[HANDSHAKE])
    assert refused.status == 400
    answer = caller.check(body, caller.sessions[ARRAYS])
    values = _read_or_refused(answer, body)
    if values is UNREAD:
        return
    if type(values) is not list or not values:
        assert _refusal(answer) == INVALID_REQUEST
        return
    asked = [value["id"] for value in values if _kind(value) == "request"]
    wrong = [value for value in values if _kind(value) is None and not _is_unanswered(value)]
    given = [each.get("id") for each in answer.messages if "method" not in each]
    assert answer.status in ((200,) if asked else (200, 202, 400))
    assert len(asked) + len(wrong) == len(given)
    assert not Counter(map(str, asked)) - Counter(map(str, given))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_wrong_header_is_named(caller, data):
    """A header of 2026-07-28 that contradicts the body is refused before anything runs."""
    headers = {
        "mcp-protocol-version": STATELESS,
        "mcp-method": "tools/call",
        "mcp-name": "local",
        "mcp-param-region": "r",
        "mcp-param-count": "1",
    }
    params = {"name": "local", "arguments": {"region": "r", "count": 1}, "_meta": META}
    body = json.dumps(message("tools/call", params, 1)).encode()
    assert caller.check(body, headers).status == 200
    name = data.draw(st.sampled_from(sorted(headers)))
    text = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=8)
    odd = data.draw(
        st.none() | text | st.sampled_from([HANDSHAKE, "=?base64?!?=", "LOCAL", "r, r"])
    )
    fine = odd == headers[name] or (name == "mcp-param-count" and odd in ("01", "1.0", "+1"))
    answer = caller.check(body, {**headers, name: odd})
    assert fine or (answer.status, answer.messages[0]["error"]["code"]) == (400, HEADER_MISMATCH)

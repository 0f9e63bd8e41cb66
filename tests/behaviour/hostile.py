"""Messages that no client should send, and the answers that a server must give."""

import copy
import json
import math
import random
from collections import Counter
from typing import Any

PREFIX = "io.modelcontextprotocol/"
STATELESS = "2026-07-28"
CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
META = {f"{PREFIX}protocolVersion": STATELESS, f"{PREFIX}clientCapabilities": CAPABILITIES}

TOOLS = ["text", "typed", "quick", "echo", "hold", "raises", "too_slow", "progress", "log", "nope"]
METHODS = [
    "ping",
    "tools/list",
    "tools/call",
    "server/discover",
    "subscriptions/listen",
    "logging/setLevel",
    "initialize",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "nope",
    "",
]
#: Tools that ask, of another server.
ASKING = ["name", "form", "url", "sample", "roots", "hand", "count", "mixed", "watched"]
URIS = ["pantry://text", "pantry://blob", "item://1", "item://x", "ask://one", "x://1", "", "%"]
PROMPTS = ["review", "typed", "kinds", "raw", "asked", "nope", ""]
NOTIFICATIONS = [
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/nope",
    "tools/list",
]
#: Replacements for other values; few ids, so that they collide.
JUNK = [
    None, True, False, 0, 1, -1, 2**70, 1.5, 1e300, "", "x", "1", "é\u2028", "\ufffd", [], [[]], {},
    {"a": None}, [1, "x", None], {"_meta": 5}, "x" * 5000, {"requestId": 1}, "notifications/x",
]  # fmt: skip
#: Bytes that are not JSON, or are beyond our limits.
TEXTS = [
    b"{", b"}", b"[", b"nul", b"NaN", b"\xff\xfe", b"\x00", b'"', b"{}", b"[]", b"[[[]]]", b"5",
    b"1e400", b"-", b'{"a":1}{"b":2}', b"\xef\xbb\xbf5", b"[" * 100_000, b'{"a":' * 2000,
    b'{"jsonrpc":"2.0","id":"u1","method":"ping","params":{"a":NaN}}',
    b'{"jsonrpc":"2.0","id":"u2","method":"ping","params":{"a":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
    b'{"jsonrpc":"2.0","id":"u3","method":"ping","params":' + b'{"a":' * 200 + b"1" + b"}" * 201,
    b'{"jsonrpc":"2.0","id":"u4","id":"u5","method":"ping"}',
    b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"\xff"},"id":"u6"}',
]  # fmt: skip


def request(choose: random.Random) -> dict[str, Any]:
    """Draw a request of a client of either era."""
    method = choose.choice([*METHODS, "tools/call", "tools/call", "tools/list"])
    params: dict[str, Any] = {}
    if method == "tools/call":
        tools = choose.choice([TOOLS, ASKING])
        arguments = choose.choice([{}, {"key": "k"}, {"message": "m"}, {"message": 5}, None])
        params = {"name": choose.choice(tools), "arguments": arguments}
    if method == "subscriptions/listen":
        filters = [{}, {"toolsListChanged": True}, {"resourceSubscriptions": URIS[:3]}]
        params = {"notifications": choose.choice(filters)}
    if method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
        params = {"uri": choose.choice(URIS)}
    if method == "prompts/get":
        arguments = choose.choice([{}, {"code": "x"}, {"count": "1"}, {"count": 1}, None])
        params = {"name": choose.choice(PROMPTS), "arguments": arguments}
    if method == "completion/complete":
        params = completion(choose)
    if method in ("tools/call", "prompts/get", "resources/read") and choose.random() < 0.2:
        answer = {"action": "accept", "content": {"name": "x"}}
        params["inputResponses"] = choose.choice([{}, {"q": answer}, {"who": answer}, 5])
        if choose.random() < 0.5:
            params["requestState"] = choose.choice(["", "x", "A" * 80, 5, None, {}])
    meta = dict(META) if choose.random() < 0.5 else {}
    if choose.random() < 0.3:
        meta["progressToken"] = choose.choice([0, "", "p", 1.5, None])
    if meta:
        params["_meta"] = meta
    id_ = choose.choice([choose.randrange(10**6), str(choose.randrange(10**6)), 1, "1", 0, ""])
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def completion(choose: random.Random) -> dict[str, Any]:
    """Draw the params of `completion/complete`."""
    refs = [
        {"type": "ref/prompt", "name": choose.choice(PROMPTS)},
        {"type": "ref/resource", "uri": "item://{number}{?unit}"},
        {"type": "ref/nope"},
    ]
    argument = {"name": choose.choice(["style", "number", "language", "nope"]), "value": "s"}
    context = choose.choice([{}, {"arguments": {"field": "web"}}, {"arguments": 5}, None])
    return {"ref": choose.choice(refs), "argument": argument, "context": context}


def other(choose: random.Random) -> dict[str, Any]:
    """Draw a notification or a response."""
    if choose.random() < 0.5:
        id_ = choose.choice([1, "1", 0, "", 77, None, [1]])
        params = choose.choice([{"requestId": id_}, {"progressToken": id_, "progress": 1}, {}])
        return {"jsonrpc": "2.0", "method": choose.choice(NOTIFICATIONS), "params": params}
    answer = choose.choice(
        [
            {"result": {}},
            {"result": 5},
            {"error": {"code": 1, "message": "x"}},
            {"error": 5},
            {"result": {}, "error": {"code": 1, "message": "x"}},
        ]
    )
    return {"jsonrpc": "2.0", "id": choose.choice([1, "1", None, 10**6]), **answer}


def mutate(choose: random.Random, message: dict[str, Any]) -> dict[str, Any]:
    """Change, remove or add something anywhere in a message."""
    changed = copy.deepcopy(message)
    node: Any = changed
    while True:
        key = choose.choice(list(node))
        if isinstance(node[key], dict) and node[key] and choose.random() < 0.6:
            node = node[key]
            continue
        action = choose.random()
        if action < 0.25:
            del node[key]
        elif action < 0.4:
            node[choose.choice(["x", "result", "error", "_meta", "id", "method"])] = choose.choice(
                JUNK
            )
        else:
            node[key] = choose.choice(JUNK)
        return changed


def line(choose: random.Random) -> bytes:
    """Draw one line for a server."""
    kind = choose.random()
    if kind < 0.1:
        return choose.choice(TEXTS)
    if kind < 0.2:
        text = json.dumps(request(choose)).encode()
        return text[: choose.randrange(1, len(text))]
    if kind < 0.25:
        return json.dumps([message(choose) for _ in range(choose.randrange(4))]).encode()
    return json.dumps(message(choose)).encode()


def message(choose: random.Random) -> dict[str, Any]:
    """Draw one message, valid or not."""
    made = request(choose) if choose.random() < 0.7 else other(choose)
    for _ in range(choose.choice([0, 0, 1, 1, 2])):
        if made:
            made = mutate(choose, made)
    return made


class Debts:
    """The answers that a server must give: one for each request, by its id."""

    def __init__(self, *, batches: bool) -> None:
        self._batches = batches
        self._least: Counter[Any] = Counter()
        self._most: Counter[Any] = Counter()
        self._least_in_all = self._most_in_all = 0
        self._nameless = 0
        self._cancelled: set[Any] = set()

    def add(self, data: bytes) -> None:
        """Add the answer that a line demands."""
        value = _read(data)
        if value is _NO_JSON:
            # Its id is only sometimes known; an apparent response is not answered.
            self._owe(None, sure=b'"result"' not in data and b'"error"' not in data)
        elif isinstance(value, list) and self._batches and 0 < len(value) <= 100:
            for each in value:
                self._add_value(each)
        else:
            self._add_value(value)

    def _add_value(self, value: Any) -> None:
        if not isinstance(value, dict):
            self._owe(None)
            return
        id_, method = value.get("id"), value.get("method")
        if method == "notifications/cancelled" and isinstance(value.get("params"), dict):
            self._cancelled.add(_key(value["params"].get("requestId")))
        is_call = type(method) is str and value.get("jsonrpc") == "2.0"
        if is_call and id_ is None and "id" not in value:
            return  # a notification, well-formed or not
        if "method" not in value and ("result" in value or "error" in value):
            return  # a response
        self._owe(id_ if type(id_) in (int, str) else None)

    def _owe(self, id_: Any, *, sure: bool = True) -> None:
        self._most_in_all += 1
        self._least_in_all += sure
        if id_ is None:
            self._nameless += 1
        else:
            self._most[_key(id_)] += 1
            self._least[_key(id_)] += 1

    def check(self, answers: list[dict[str, Any]]) -> None:
        """Compare the answers with the expected ones.

        Raises:
            AssertionError: A request has no answer, or more than one.
        """
        given = Counter(_key(answer["id"]) for answer in answers if "id" in answer)
        cancellable = sum(self._most[key] for key in self._cancelled)
        assert self._least_in_all - cancellable <= len(answers) <= self._most_in_all
        for key in self._most | given:
            least = 0 if key in self._cancelled else self._least[key]
            assert least <= given[key] <= self._most[key] + self._nameless, key


_NO_JSON = object()


def _key(id_: Any) -> Any:
    return (type(id_), id_) if isinstance(id_, str | int) else None


def _read(data: bytes) -> Any:
    def refuse(_: str) -> Any:
        raise ValueError

    def finite(text: str) -> float:
        value = float(text)
        if math.isinf(value):
            raise ValueError
        return value

    try:
        value = json.loads(
            data.decode().removeprefix("\ufeff"), parse_constant=refuse, parse_float=finite
        )
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return _NO_JSON
    return value if _depth(value) <= 128 else _NO_JSON


def _depth(value: Any) -> int:
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return 1 + max(map(_depth, inside), default=0)
    return 0

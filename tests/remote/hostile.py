"""A server that misbehaves, for clients, gateways and commands, in both eras and on any transport.

`MISBEHAVIOURS` has a function for each method that the server answers otherwise than a good one, by
the name of the misbehaviour. Such a function is called with the server and the request, and returns
the messages to send, as mappings or bytes. `CLOSE` closes the connection. `FLOODS` has more of
them, each of which sends `FLOOD` bytes.

As a program, `python hostile.py NAME` misbehaves so over stdio.
"""

import json
import os
import sys
from contextlib import suppress

import trio

CLOSE = object()
MODERN = "2026-07-28"
#: Characters that control a terminal, or forge a line of a log.
EVIL = "\x1b]0;owned\x07\x1b[2J\r\nERROR forged\n\x9b31m\u202e\u200b\u2028\U000e0041\x00"
TEXT = {"content": [{"type": "text", "text": "fine"}]}
ROUNDS = 12


def tool(name="echo", **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


#: The lists of a good server, by method: the member of the result, and its entries.
LISTS = {
    "tools/list": ("tools", [tool()]),
    "prompts/list": ("prompts", [{"name": "hello"}]),
    "resources/list": ("resources", [{"uri": "a://1", "name": "one"}]),
    "resources/templates/list": (
        "resourceTemplates",
        [{"uriTemplate": "b://{x}", "name": "many"}],
    ),
}
RESULTS = {
    "tools/call": TEXT,
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "fine"}}]},
    "resources/read": {"contents": [{"uri": "a://1", "text": "fine"}]},
    "completion/complete": {"completion": {"values": ["fine"]}},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
    "logging/setLevel": {},
    "ping": {},
}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}
INFO = {"name": "hostile", "version": "1"}
CHANGED = [f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")]

MISBEHAVIOURS = {}


def misbehaves(*methods):
    """Add a misbehaviour: its function returns the answers to some methods."""

    def add(function):
        MISBEHAVIOURS[function.__name__] = dict.fromkeys(methods, function)
        return function

    return add


def result(request, members):
    return {"id": request["id"], "result": {"resultType": "complete", **members}}


def notice(method, **params):
    return {"method": method, "params": params}


def page(request, entries, **more):
    member = LISTS[request["method"]][0]
    kept = {"ttlMs": 0, "cacheScope": "private"}
    return result(request, {member: entries, **kept, **more})


class Hostile:
    """The server: an async context manager that returns the stream of a new connection.

    Args:
        name: The name of the misbehaviour.
        nursery: Runs the connections in memory.
        pair: Makes the two ends of a connection in memory.

    Attributes:
        asked: The number of requests that it received.
    """

    def __init__(self, name, nursery=None, pair=None):
        self.asked = 0
        self.number = 0
        self._table = {**MISBEHAVIOURS, **FLOODS}.get(name, {})
        self._nursery = nursery
        self._pair = pair
        self._mine = []

    async def __aenter__(self):
        ours, theirs = self._pair()
        self._mine.append(theirs)
        self._nursery.start_soon(self._serve, theirs)
        return ours

    async def __aexit__(self, *_):
        await self._mine.pop().aclose()

    async def _serve(self, stream):
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while messages := await stream.receive_bytes():
                for data in messages:
                    for answer in self.answers(json.loads(data)):
                        if answer is CLOSE:
                            await stream.aclose()
                            return
                        await stream.send([encode(answer)])

    def count(self):
        self.number += 1
        return self.number

    def answers(self, message):
        """Return the messages and bytes that follow a message of the client."""
        if "method" not in message or "id" not in message:
            return
        self.asked += 1
        function = self._table.get(message["method"], self._table.get("*"))
        if function is None:
            yield from self.well(message)
        else:
            yield from function(self, message)

    def well(self, request):
        """Answer as a good server does."""
        method = request["method"]
        params = request.get("params") or {}
        if method == "initialize":
            begun = {"protocolVersion": params["protocolVersion"], "serverInfo": INFO}
            yield {"id": request["id"], "result": {**begun, "capabilities": CAPABILITIES}}
        elif method == "server/discover":
            found = {"supportedVersions": [MODERN], "capabilities": CAPABILITIES}
            yield result(request, {**found, "ttlMs": 0, "cacheScope": "private"})
        elif method == "subscriptions/listen":
            meta = {"io.modelcontextprotocol/subscriptionId": request["id"]}
            wanted = params.get("notifications", {})
            acknowledged = "notifications/subscriptions/acknowledged"
            yield notice(acknowledged, notifications=wanted, _meta=meta)
        elif method in LISTS:
            yield page(request, LISTS[method][1])
        elif method in RESULTS:
            yield result(request, RESULTS[method])
        else:
            yield {"id": request["id"], "error": {"code": -32601, "message": "no such method"}}


def encode(answer):
    if isinstance(answer, bytes):
        return answer
    return json.dumps({"jsonrpc": "2.0", **answer}).encode("utf-8", "surrogatepass")


# Lists


@misbehaves(*LISTS)
def pages_without_end(server, request):
    yield page(request, LISTS[request["method"]][1], nextCursor=f"c{server.count()}")


@misbehaves(*LISTS)
def huge_pages_without_end(server, request):
    entry = {**LISTS[request["method"]][1][0], "description": "x" * 200_000}
    yield page(request, [entry], nextCursor=f"c{server.count()}")


@misbehaves(*LISTS)
def empty_pages_without_end(server, request):
    yield page(request, [], nextCursor=f"c{server.count()}")


@misbehaves(*LISTS)
def cursors_in_a_loop(server, request):
    yield page(request, [], nextCursor="ab"[server.count() % 2])


@misbehaves(*LISTS)
def a_cursor_that_is_no_text(server, request):
    yield page(request, [], nextCursor=[server.count()])


@misbehaves(*LISTS)
def cursors_that_are_refused(server, request):
    if "cursor" in request["params"]:
        yield {"id": request["id"], "error": {"code": -32602, "message": "Invalid cursor"}}
    else:
        yield page(request, [], nextCursor=f"c{server.count()}")


@misbehaves(*LISTS)
def new_names_in_each_list(server, request):
    key = {"resources/list": "uri", "resources/templates/list": "uriTemplate"}
    kept, start = LISTS[request["method"]][1], server.count()
    name = key.get(request["method"], "name")
    yield page(request, [*kept, *({**kept[0], name: f"a://{start}/{n}"} for n in range(100))])
    if start < ROUNDS:
        yield from map(notice, CHANGED)


@misbehaves("tools/list", "prompts/list")
def names_with_the_prefix_of_another(server, request):
    names = ("echo", "good_echo", "good_hello", "good_other", "_good_echo", "good_")
    yield page(request, [{**LISTS[request["method"]][1][0], "name": name} for name in names])


@misbehaves(*LISTS)
def entries_of_wrong_types(server, request):
    member, (entry, *_) = LISTS[request["method"]]
    for wrong in ({"a": 1}, [None], [3], [[]], [{}], "x", [{**entry, "name": 3}]):
        yield result(request, {member: wrong})


@misbehaves(*LISTS)
def names_of_any_kind(server, request):
    entry = LISTS[request["method"]][1][0]
    names = ("", " ", "x" * 100_000, EVIL, "echo", "echo", "../..", "\ud800", "__class__")
    yield page(request, [entry, *({**entry, "name": name} for name in names)])


@misbehaves("resources/list", "resources/templates/list")
def uris_of_any_kind(server, request):
    uris = ("", "x", "file:///etc/passwd", "a://{", "{+x}", "{x", "a" * 100_000, EVIL, "b_good+a:")
    key = "uri" if request["method"] == "resources/list" else "uriTemplate"
    yield page(request, [{"name": "x", key: uri} for uri in uris])


@misbehaves(*LISTS)
def changes_without_end(server, request):
    yield from map(notice, CHANGED * 10)
    yield page(request, LISTS[request["method"]][1])
    if server.count() < ROUNDS:
        yield from map(notice, CHANGED * 10)


@misbehaves(*LISTS)
def silence_on_lists(server, request):
    yield from ()


@misbehaves(*LISTS)
def refused_lists(server, request):
    yield {"id": request["id"], "error": {"code": -32603, "message": "not now"}}


@misbehaves("tools/list")
def one_list_is_refused(server, request):
    yield {"id": request["id"], "error": {"code": -32000, "message": EVIL}}


# Schemas


def _schema(schema, **more):
    def listing(server, request):
        yield page(request, [tool(**{"inputSchema": schema, "outputSchema": schema, **more})])

    return listing


def _nested(depth):
    schema = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def _returns(structured):
    def call(server, request):
        yield result(request, {**TEXT, "structuredContent": structured})

    return call


WIDE = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5_000)}}
LOOP = {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
BOMB = {
    "type": "object",
    "$ref": "#/$defs/d20",
    "$defs": {
        "d0": {"type": "object"},
        **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n - 1}"}] * 4} for n in range(1, 21)},
    },
}
SLOW = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
ELSEWHERE = {"type": "object", "$ref": "http://127.0.0.1:9/schema.json"}
for _name, _one in {
    "a_deep_schema": _nested(55),
    "a_schema_that_is_too_deep": _nested(100),
    "a_wide_schema": WIDE,
    "a_schema_that_is_its_own": LOOP,
    "a_schema_that_explodes": BOMB,
    "a_slow_pattern": SLOW,
    "a_schema_elsewhere": ELSEWHERE,
    "a_schema_that_is_none": {"type": "object", "properties": [EVIL], "required": 3},
}.items():
    MISBEHAVIOURS[_name] = {
        "tools/list": _schema(_one),
        "tools/call": _returns({"a": "a" * 5000 + "!", "b": [[]] * 100}),
    }
MISBEHAVIOURS["wrong_structured_content"] = {
    "tools/list": _schema({"type": "object", "required": ["a"], "properties": {"a": {"type": []}}}),
    "tools/call": _returns([EVIL, None, {"a": float(2**60)}]),
}
MISBEHAVIOURS["a_wrong_header"] = {
    "tools/list": _schema(
        {"type": "object", "properties": {"x": {"type": "string", "x-mcp-header": EVIL}}}
    )
}


# Answers


@misbehaves("tools/call", "prompts/get", "resources/read", "completion/complete")
def silence_on_calls(server, request):
    yield from ()


@misbehaves("tools/call", "prompts/get", "resources/read", "completion/complete")
def results_of_wrong_types(server, request):
    for wrong in (5, None, [], "x"):
        yield {"id": request["id"], "result": wrong}


@misbehaves("tools/call", "prompts/get", "resources/read", "completion/complete")
def results_of_no_form(server, request):
    forms = (
        {"content": 3, "messages": 3, "contents": 3, "completion": 3},
        {"content": [3], "messages": [3], "contents": [3], "completion": {"values": 3}},
        {"content": [{"type": "image", "data": "!"}], "isError": "yes"},
        {"content": [{"type": "resource", "resource": {"uri": 3}}], "messages": [{"role": 3}]},
    )
    yield result(request, forms[server.count() % len(forms)])


@misbehaves("tools/call", "prompts/get", "resources/read")
def kinds_of_results(server, request):
    kinds = ("odd", EVIL, 3, None, "task", "input_required")
    yield result(request, {**TEXT, "resultType": kinds[server.count() % len(kinds)]})


@misbehaves("tools/call", "prompts/get", "resources/read")
def rounds_without_end(server, request):
    asked = {"method": "elicitation/create", "params": {"message": EVIL, "requestedSchema": {}}}
    questions = {f"q{server.count()}": asked}
    members = {"resultType": "input_required", "inputRequests": questions, "requestState": EVIL}
    yield result(request, members)


@misbehaves("tools/call", "prompts/get", "resources/read")
def results_over_the_limits(server, request):
    if server.count() % 2:
        yield result(request, {"content": [{"type": "text", "text": "x" * 1_000_000}]})
    else:
        yield result(request, {"content": [], "x": [[]] * 200_000})


@misbehaves("*")
def control_characters(server, request):
    for answer in server.well(request):
        yield _evil(answer) if "result" in answer else answer


def _evil(value):
    """Append control characters to each text that may have any value."""
    if isinstance(value, dict):
        names = ("text", "name", "version", "description", "title", "values", "instructions")
        spoilt = {key: _evil(each) for key, each in value.items()}
        for name in names:
            if isinstance(value.get(name), str) and value[name] not in ("echo", "hello"):
                spoilt[name] = value[name] + EVIL
        if "inputSchema" in value or "uri" in value or "serverInfo" in value:
            spoilt |= {"description": EVIL, "title": EVIL, "instructions": EVIL}
        return spoilt
    return [_evil(each) for each in value] if isinstance(value, list) else value


@misbehaves("tools/call", "prompts/get", "resources/read", "completion/complete")
def errors_of_any_kind(server, request):
    errors = (
        {"code": -32000, "message": EVIL * 1000, "data": {"x": EVIL}},
        {"code": 2**40, "message": ""},
        {"code": "1", "message": 3},
        {"code": -32042, "message": "log in", "data": {"elicitations": 3}},
        {"code": -32602, "message": "no", "data": {"uri": request["params"].get("uri")}},
        {"code": -32020, "message": "other headers"},
        {"code": -32021, "message": "cannot", "data": 3},
        {"code": -32022, "message": "version", "data": {"supported": [EVIL]}},
        5,
    )
    yield {"id": request["id"], "error": errors[server.count() % len(errors)]}


@misbehaves("tools/call", "prompts/get", "resources/read")
def answers_twice(server, request):
    for text in ("fine", "the second"):
        found = {"content": [{"type": "text", "text": text}], **RESULTS[request["method"]]}
        yield result(request, found)
    yield {"id": request["id"], "error": {"code": -32000, "message": "and an error"}}


@misbehaves("tools/call", "tools/list")
def answers_to_other_requests(server, request):
    for id_ in (*range(-5, 200), None, True, 1.5, "1", [1], {}, EVIL):
        if id_ != request["id"] or isinstance(id_, bool):
            yield {"id": id_, "result": {"tools": [tool("stolen")], **TEXT}}
    yield from server.well(request)


@misbehaves("tools/call", "prompts/get")
def keys_twice(server, request):
    id_ = json.dumps(request["id"]).encode()
    yield b'{"jsonrpc":"2.0","id":%b,"id":9999,"result":{},"result":{"content":[]}}' % id_
    yield from server.well(request)


@misbehaves("tools/call", "tools/list")
def garbage(server, request):
    yield from (b"\xff\xfe{", b"{", b"[]", b"5", b"null", b'{"jsonrpc":"2.0"}', b"Ready!\x1b[2J")
    yield from (b"[" * 100_000, b'{"jsonrpc":"1.0","id":1,"result":{}}', b'"' + b"x" * 300_000)
    yield b'{"jsonrpc":"2.0","method":"x","params":{"a":"\xed\xa0\x80","b":"\\ud800"}}'
    yield from server.well(request)


@misbehaves("tools/call")
def half_a_message(server, request):
    (answer,) = server.well(request)
    yield encode(answer)[:-9]
    yield CLOSE


@misbehaves("tools/call")
def the_end_in_a_call(server, request):
    yield CLOSE


@misbehaves("tools/list", "prompts/list", "resources/list")
def the_end_in_a_list(server, request):
    yield CLOSE


# Unrequested messages


@misbehaves("tools/call", "tools/list")
def a_flood_of_notices(server, request):
    for number in range(300):
        yield notice("notifications/x", n=number)
        yield notice("notifications/message", level="error", data=EVIL, logger=EVIL)
        yield notice("notifications/resources/updated", uri=f"a://{number}")
        yield notice("notifications/message", level=3, data=None)
    yield from server.well(request)


@misbehaves("tools/call", "tools/list")
def a_flood_of_progress(server, request):
    token = request["params"].get("_meta", {}).get("progressToken", request["id"])
    for number in range(200):
        yield notice("notifications/progress", progressToken=token, progress=number, message=EVIL)
        for other in (number, str(number), [], None, True):
            yield notice("notifications/progress", progressToken=other, progress="much")
    yield from server.well(request)


@misbehaves("tools/call", "tools/list")
def cancellations(server, request):
    for id_ in (*range(200), None, [], {}, EVIL, request["id"]):
        yield notice("notifications/cancelled", requestId=id_, reason=EVIL)
    yield from server.well(request)


@misbehaves("tools/call", "tools/list", "prompts/list")
def questions_of_its_own(server, request):
    asked = {
        "roots/list": {},
        "ping": {},
        "elicitation/create": {"message": EVIL, "requestedSchema": {"type": "object"}},
        "sampling/createMessage": {"messages": [], "maxTokens": 1},
        EVIL: {},
        "tools/call": {"name": "good_echo"},
    }
    for number in range(50):
        for method, params in asked.items():
            yield {"id": f"{method[:9]}{number}", "method": method, "params": params}
    yield from server.well(request)


@misbehaves("tools/call")
def the_end_in_a_question(server, request):
    yield {"id": "q", "method": "elicitation/create", "params": {"message": "?"}}
    yield {"id": "q", "method": "roots/list"}
    yield CLOSE


@misbehaves("subscriptions/listen")
def listening_ends_at_once(server, request):
    yield from server.well(request)
    meta = {"io.modelcontextprotocol/subscriptionId": True}
    yield notice("notifications/subscriptions/acknowledged", notifications=3, _meta=meta)
    yield result(request, {})


@misbehaves("subscriptions/listen", "resources/subscribe")
def listening_is_refused(server, request):
    yield {"id": request["id"], "error": {"code": -32000, "message": EVIL}}


# The beginning


@misbehaves("initialize", "server/discover")
def unknown_versions(server, request):
    wrong = ("9999-01-01", EVIL, 3, None, [])[server.count() % 5]
    begun = {"protocolVersion": wrong, "supportedVersions": [wrong], "serverInfo": INFO}
    yield result(request, {**begun, "capabilities": CAPABILITIES})


@misbehaves("initialize", "server/discover")
def a_beginning_of_wrong_types(server, request):
    for answer in server.well(request):
        yield {**answer, "result": {**answer["result"], "capabilities": [3], "serverInfo": EVIL}}


@misbehaves("initialize", "server/discover")
def strange_capabilities(server, request):
    odd = {**CAPABILITIES, "tools": 3, "extensions": {EVIL: EVIL}, "prompts": {"listChanged": 3}}
    for answer in server.well(request):
        yield {**answer, "result": {**answer["result"], "capabilities": odd, "instructions": EVIL}}


@misbehaves("*")
def silence(server, request):
    yield from ()


@misbehaves("*")
def the_end_at_once(server, request):
    yield CLOSE


# Floods

#: Bytes that each of them sends before it answers, or in all.
FLOOD = 20_000_000
FLOODS = {}
PADDING = "x" * 10_000


def floods(*methods):
    """Add a flood: its function returns many messages, which precede the good answer."""

    def add(function):
        def answer(server, request):
            if server.count() == 1:
                yield from function(request)
            yield from server.well(request)

        FLOODS[function.__name__] = dict.fromkeys(methods, answer)
        return function

    return add


def _many(method, **params):
    template = encode(notice(method, **params, n="NUMBER", padding=PADDING))
    for number in range(FLOOD // len(template)):
        yield template.replace(b"NUMBER", b"%d" % number)


@floods("tools/call")
def floods_of_log_messages(request):
    yield from _many("notifications/message", level="error", data=PADDING)


@floods("tools/call")
def floods_of_progress(request):
    token = request["params"].get("_meta", {}).get("progressToken", 1)
    yield from _many("notifications/progress", progressToken=token, progress=1, message="NUMBER")


@floods("tools/call")
def floods_of_updates(request):
    yield from _many("notifications/resources/updated", uri="a://NUMBER")


@floods("tools/list")
def floods_of_questions(request):
    template = encode({"id": "NUMBER", "method": "roots/list", "params": {"padding": PADDING}})
    for number in range(FLOOD // len(template)):
        yield template.replace(b"NUMBER", b"%d" % number)


@floods("tools/call")
def floods_of_answers(request):
    template = encode({"id": "NUMBER", "result": {"padding": PADDING}})
    for number in range(FLOOD // len(template)):
        yield template.replace(b"NUMBER", b"%d" % number)


@floods("tools/list")
def floods_without_a_line_end(request):
    yield b"x" * FLOOD


def _huge_lists(server, request):
    """Send a megabyte of new names each time, and a notice of changes."""
    start, entry = server.count(), LISTS[request["method"]][1][0]
    made = [tool(f"t{start}_{n}", description=PADDING) for n in range(100)]
    yield page(request, [entry, *made])
    if start * 1_000_000 < FLOOD:
        yield notice(CHANGED[0])


def _huge_pages(server, request):
    made = [tool(f"t{server.count()}", description=PADDING * 50)]
    yield page(request, made, nextCursor=f"c{server.number}{PADDING}")


def _huge_schemas(server, request):
    """List tools with large new output schemas, and return results that break them."""
    number = server.count()
    schema = {"type": "object", "required": [f"{PADDING * 10}{number}"]}
    yield page(request, [tool(outputSchema=schema), tool("other", outputSchema=schema)])


FLOODS["floods_of_names"] = {"tools/list": _huge_lists}
FLOODS["pages_of_a_flood"] = {"tools/list": _huge_pages}
FLOODS["floods_of_schemas"] = {
    "tools/list": _huge_schemas,
    "tools/call": lambda server, request: iter(
        [result(request, {**TEXT, "structuredContent": {}})]
    ),
}


def main(name):
    """Misbehave over stdio, until the client leaves."""
    server = Hostile(name)
    try:
        for line in sys.stdin.buffer:
            for answer in server.answers(json.loads(line)):
                if answer is CLOSE:
                    return
                sys.stdout.buffer.write(encode(answer) + b"\n")
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The interpreter flushes the rest at its end, and would report the failure.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main(sys.argv[1])

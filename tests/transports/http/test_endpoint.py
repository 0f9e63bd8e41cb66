"""Responses to requests of each era, check by check, in the order of the checks."""

import pytest

from noizu_mcp import Server

from ...kit.messages import CAPABILITIES, META, VERSION, call, message
from .shop import Shop, ShopBehind
from .wire import serving, settled

INIT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}


@pytest.fixture
async def wire(autojump_clock):
    async with serving(Shop()) as wire:
        yield wire


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "TRACE", "OPTIONS"])
async def test_other_methods_are_not_allowed(autojump_clock, wire, method):
    """405 lists the allowed methods."""
    done = await wire.send(method)
    assert (done.status, done.headers["allow"]) == (405, "GET, POST, DELETE")
    assert (done.body == b"") == (method == "HEAD")
    assert method == "HEAD" or done.error == -32600


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_the_stateless_era_has_only_post(autojump_clock, wire, method):
    """A client of 2026-07-28 has no session to read or to end."""
    done = await wire.send(method, None, {"mcp-protocol-version": "2026-07-28"})
    assert (done.status, done.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/json-rpc", "application/x-www-form-urlencoded"]
)
async def test_a_post_says_that_it_is_json(autojump_clock, wire, kind):
    """A content type that a form of another site can send is refused before the body is read."""
    done = await wire.send("POST", call("echo"), {"content-type": kind})
    assert (done.status, done.error) == (415, -32600)


@pytest.mark.parametrize("coding", ["gzip", "BR", "identity, gzip", "x"])
async def test_a_body_comes_as_it_is(autojump_clock, wire, coding):
    """A Content-Encoding is refused, and named in the error."""
    done = await wire.send_modern(call("echo"), {"content-encoding": coding})
    assert (done.status, done.error) == (415, -32600)
    assert "Content-Encoding must be identity" in done.json["error"]["message"]
    assert done.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("coding", ["", "identity", "Identity"])
async def test_the_identity_coding(autojump_clock, wire, coding):
    """`identity` is accepted."""
    assert (await wire.send_modern(call("echo"), {"content-encoding": coding})).status == 200


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
async def test_content_types_have_parameters_and_any_case(autojump_clock, wire, kind):
    """Content types are compared as RFC 9110 says."""
    done = await wire.send_modern(call("echo"), {"content-type": kind})
    assert done.status == 200


@pytest.mark.parametrize(
    ("body", "code", "id_"),
    [
        (b"{", -32700, None),
        (b"", -32700, None),
        (b"\xff", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700, 1),
        (b"1", -32600, None),
        (b"[]", -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}', -32600, "a"),
    ],
)
@pytest.mark.parametrize("headers", [{}, {"mcp-protocol-version": "2026-07-28"}])
async def test_what_is_no_message(autojump_clock, wire, body, code, id_, headers):
    """400 in either era, with the id if it can be read."""
    done = await wire.send("POST", body, headers)
    assert (done.status, done.error) == (400, code)
    if code == -32600:
        assert done.json.get("id") == id_


async def test_other_paths_are_not_found(autojump_clock, wire):
    """The body distinguishes this 404 from others."""
    done = await wire.send("POST", call("echo"), path="/")
    assert (done.status, done.error) == (404, -32600)
    error = {"code": -32600, "message": "Nothing is at /; the endpoint is /mcp"}
    assert done.json["error"] == {**error, "data": {"endpoint": "/mcp"}}
    done = await wire.send_modern(call("echo"), path="/mcp/")
    assert done.status == 200


# 2026-07-28


@pytest.mark.parametrize(
    ("meta", "headers", "status", "code"),
    [
        (META, {"mcp-protocol-version": None}, 400, -32020),
        ({CAPABILITIES: {}}, {"mcp-protocol-version": None}, 400, -32020),
        ({}, {}, 400, -32602),
        ({VERSION: "2026-07-28"}, {}, 400, -32602),
        ({CAPABILITIES: {}}, {}, 400, -32602),
        ({VERSION: 1, CAPABILITIES: {}}, {}, 400, -32602),
        ({VERSION: "2026-07-28", CAPABILITIES: []}, {}, 400, -32602),
        ({VERSION: "v999.0.0", CAPABILITIES: {}}, {}, 400, -32020),
        (META, {"mcp-protocol-version": "v999.0.0"}, 400, -32020),
        (META, {"mcp-protocol-version": "2025-11-25"}, 400, -32020),
        ({VERSION: "v9", CAPABILITIES: {}}, {"mcp-protocol-version": "v9"}, 400, -32022),
        (META, {"mcp-method": None}, 400, -32020),
        (META, {"mcp-method": "TOOLS/CALL"}, 400, -32020),
        (META, {"mcp-name": None}, 400, -32020),
        (META, {"mcp-name": "Echo"}, 400, -32020),
        (META, {"mcp-name": "=?base64?!?="}, 400, -32020),
        (META, {"mcp-name": "ech\xf6"}, 400, -32020),
        (META, {"mcp-name": "=?base64?ZWNobw==?="}, 200, None),
        (META, {"mcp-name": " \techo "}, 200, None),
        (META, {"mcp-session-id": "none", "last-event-id": "1-1"}, 200, None),
        (META, {"mcp-param-other": "x"}, 200, None),
    ],
)
async def test_a_stateless_request_is_checked_in_order(
    autojump_clock, wire, meta, headers, status, code
):
    """Header, `_meta`, their agreement, version and mirrored headers; errors have the id."""
    body = call("echo", id_="abc", _meta=meta)
    given = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "echo"}
    done = await wire.send("POST", body, {**given, **headers})
    assert (done.status, done.json["id"], "mcp-session-id" in done.headers) == (
        status,
        "abc",
        False,
    )
    assert done.json.get("error", {}).get("code") == code


async def test_an_unsupported_version_says_what_is_served(autojump_clock, wire):
    """The error lists the supported versions."""
    body = call("echo", _meta={VERSION: "v9", CAPABILITIES: {}})
    done = await wire.send("POST", body, {"mcp-protocol-version": "v9"})
    data = done.json["error"]["data"]
    assert data["requested"] == "v9"
    assert set(data["supported"]) >= {"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}
    body = call("echo")  # without `_meta` it belongs to neither era
    done = await wire.send("POST", body, {"mcp-protocol-version": "v9"})
    assert (done.status, done.error, done.json["id"]) == (400, -32022, 1)
    for method, body in (("GET", None), ("DELETE", None), ("POST", message("notifications/x"))):
        done = await wire.send(method, body, {"mcp-protocol-version": "v9"})
        assert (done.status, done.error, done.json["error"]["data"]) == (400, -32022, data)


async def test_what_is_refused_before_the_protocol_names_its_request(autojump_clock):
    """The refusal has the id of the request, once that can be read."""
    async with serving(Shop(), limits={"streams": 1}) as wire:
        ping = message("ping", {}, "p")
        found = [
            await wire.send("POST", ping),
            await wire.send("POST", ping, {"mcp-session-id": "none"}),
        ]
        busy = wire.modern(call("wait", {"seconds": 1}))
        await settled()
        found.append(await wire.send_modern(call("echo", id_="p")))
        await busy.ended.wait()
    assert [each.status for each in found] == [400, 404, 503]
    assert [each.json["id"] for each in found] == ["p"] * 3


@pytest.mark.parametrize(
    "method",
    [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "completion/complete",
        "nonsense",
    ],
)
async def test_what_the_stateless_era_has_not_is_not_found(autojump_clock, wire, method):
    """Removed methods, features that are not offered, and unknown methods are 404 with a body."""
    done = await wire.send_modern(message(method, INIT, 5))
    assert (done.status, done.error, done.json["id"]) == (404, -32601, 5)


@pytest.mark.parametrize(
    ("arguments", "headers", "status"),
    [
        ({"region": "eu"}, {"mcp-param-region": "eu"}, 200),
        ({"region": "eu", "count": 42}, {"mcp-param-region": "eu", "mcp-param-count": "42.0"}, 200),
        ({"region": "é"}, {"mcp-param-region": "=?base64?w6k=?="}, 200),
        ({"region": None}, {}, 200),
        ({"region": "", "count": 0}, {"mcp-param-region": "", "mcp-param-count": "0"}, 200),
        ({}, {"mcp-param-region": "eu"}, 400),
        ({"region": "eu"}, {}, 400),
        ({"region": "eu"}, {"mcp-param-region": "us"}, 400),
        ({"region": "eu", "count": 0}, {"mcp-param-region": "eu"}, 400),
    ],
)
@pytest.mark.parametrize("server", [Shop, ShopBehind])
async def test_arguments_agree_with_their_headers(
    autojump_clock, server, arguments, headers, status
):
    """A tool may declare which arguments are mirrored in headers, also through wrappers."""
    async with serving(server()) as wire:
        done = await wire.send_modern(call("local", arguments), headers)
    assert (done.status, done.json.get("error", {}).get("code")) == (
        status,
        None if status == 200 else -32020,
    )


async def test_a_capability_that_is_missing_has_its_own_status(autojump_clock, wire):
    """400 with the missing capability; a request declares capabilities only for itself."""
    done = await wire.send_modern(call("ask"))
    assert (done.status, done.error) == (400, -32021)
    assert done.json["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}
    able = call("ask", _meta={CAPABILITIES: {"elicitation": {}}})
    done = await wire.send_modern(able)
    assert (done.status, done.json["result"]["resultType"]) == (200, "input_required")
    assert (await wire.send_modern(call("ask"))).status == 400


async def test_other_errors_of_handlers_come_with_200(autojump_clock, wire):
    """Their status would be lost in a stream."""
    done = await wire.send_modern(call("nothing"))
    assert (done.status, done.error) == (200, -32602)
    done = await wire.send_modern(message("tools/list", {"cursor": "?"}, 1))
    assert (done.status, done.error) == (200, -32602)


async def test_a_stateless_result(autojump_clock, wire):
    """The result has its type and the server info; no session is created."""
    done = await wire.send_modern(call("echo", {"text": "hi"}, id_="7"))
    result = done.json["result"]
    assert (done.status, done.json["id"], result["resultType"]) == (200, "7", "complete")
    assert result["content"] == [{"type": "text", "text": "hi"}]
    assert "mcp-session-id" not in done.headers
    assert not wire.endpoint.sessions


@pytest.mark.parametrize("method", ["notifications/cancelled", "notifications/nonsense"])
async def test_stateless_notifications_are_accepted(autojump_clock, wire, method):
    """They are accepted and ignored: 2026-07-28 defines none over HTTP."""
    headers = {"mcp-protocol-version": "2026-07-28"}
    for body, given in ((message(method), headers), (message(method, {"_meta": META}), {})):
        done = await wire.send("POST", body, given)
        assert (done.status, done.body, done.headers) == (202, b"", {"content-length": "0"})


@pytest.mark.parametrize(
    "body",
    [
        [message("tools/list", {}, 1)],
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
    ],
)
async def test_the_stateless_era_has_no_arrays_and_no_answers(autojump_clock, wire, body):
    """A POST is one request or notification."""
    done = await wire.send("POST", body, {"mcp-protocol-version": "2026-07-28"})
    assert (done.status, done.error) == (400, -32600)


async def test_stateless_requests_are_bounded(autojump_clock):
    """Beyond the limit the next request is refused; running ones go on."""
    async with serving(Shop(), limits={"streams": 1}) as wire:
        first = wire.modern(call("wait", {"seconds": 0.5}))
        await settled()
        second = await wire.send_modern(call("echo"))
        assert (second.status, second.error, second.headers["retry-after"]) == (503, -32603, "1")
        await first.ended.wait()
        assert first.status == 200
        assert (await wire.send_modern(call("echo"))).status == 200


# Up to 2025-11-25


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_handshake_makes_a_session(autojump_clock, wire, version):
    """The id is visible ASCII, and new each time; the version is echoed."""
    first = await wire.session(version)
    second = await wire.session(version)
    assert first.id != second.id
    assert all("!" <= char <= "~" for char in first.id)
    assert len(first.id) >= 32
    done = await first.post(call("echo", {"text": "hi"}))
    assert done.json == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [{"type": "text", "text": "hi"}]},
    }
    assert "mcp-session-id" not in done.headers


async def test_a_handshake_for_another_version_gets_the_latest(autojump_clock, wire):
    """2026-07-28 has no handshake, so the answer has the version before it."""
    for asked in ("2026-07-28", "1999-01-01"):
        body = message("initialize", {**INIT, "protocolVersion": asked}, 1)
        done = await wire.send("POST", body)
        assert done.json["result"]["protocolVersion"] == "2025-11-25"


async def test_a_bad_handshake_makes_no_session(autojump_clock, wire):
    """No session id is returned, either."""
    done = await wire.send("POST", message("initialize", {}, 1))
    assert (done.status, done.error) == (200, -32602)
    assert "mcp-session-id" not in done.headers
    assert not wire.endpoint.sessions


async def test_without_a_version_the_negotiated_one_counts(autojump_clock, wire):
    """Before 2025-06-18 there was no version header."""
    session = await wire.session("2025-03-26")
    done = await session.post(call("echo"), {"mcp-protocol-version": None})
    assert done.status == 200


@pytest.mark.parametrize("body", [call("echo"), message("notifications/initialized")])
async def test_an_unknown_version(autojump_clock, wire, body):
    """An unknown version is 400, also in a session, with its own code."""
    session = await wire.session()
    done = await session.post(body, {"mcp-protocol-version": "1.0"})
    assert (done.status, done.error) == (400, -32022)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_an_unknown_version_without_post(autojump_clock, wire, method):
    """The header is checked for every method (2025-11-25 `basic/transports`)."""
    session = await wire.session()
    headers = {**session.headers, "mcp-protocol-version": "1.0"}
    done = await wire.send(method, None, headers)
    assert (done.status, done.error) == (400, -32022)
    assert (await session.post(call("echo"))).status == 200


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_the_session_must_be_named_and_known(autojump_clock, wire, method):
    """Without an id the status is 400, with an unknown one 404."""
    body = call("echo") if method == "POST" else None
    done = await wire.send(method, body)
    assert (done.status, done.error) == (400, -32600)
    done = await wire.send(method, body, {"mcp-session-id": "unknown"})
    assert (done.status, done.error) == (404, -32600)


@pytest.mark.parametrize("body", [{"jsonrpc": "2.0", "id": 1, "result": {}}, [call("echo")]])
async def test_answers_and_arrays_need_a_session(autojump_clock, wire, body):
    """Responses and arrays are refused without a session."""
    assert (await wire.send("POST", body)).status == 400


async def test_errors_with_a_handshake(autojump_clock, wire):
    """Unknown methods have status 200, invalid requests 400."""
    session = await wire.session(ready=False)
    done = await session.post(message("tools/list", {}, 1))
    assert (done.status, done.error) == (400, -32600)
    assert (await session.post(message("ping", {}, 1))).json["result"] == {}
    assert (await session.post(message("notifications/initialized"))).status == 202
    for method in ("nonsense", "prompts/list", "server/discover"):
        done = await session.post(message(method, {}, 2))
        assert (done.status, done.error, done.json["id"]) == (200, -32601, 2)
    done = await session.post(call("nothing"))
    assert (done.status, done.error) == (200, -32602)
    done = await session.post([call("echo")])
    assert (done.status, done.error) == (400, -32600)


async def test_a_second_handshake_makes_a_second_session(autojump_clock, wire):
    """A handshake begins a session, even if its headers name another one."""
    session = await wire.session()
    done = await session.post(message("initialize", INIT, 1))
    assert done.status == 200
    assert done.headers["mcp-session-id"] != session.id


async def test_an_id_is_used_once_at_a_time(autojump_clock, wire):
    """A duplicate is refused; the first request is answered."""
    session = await wire.session()
    first = session.open(call("wait", {"seconds": 0.5}))
    await settled()
    done = await session.post(call("echo"))
    assert (done.status, done.error, done.json["id"]) == (400, -32600, 1)
    await first.ended.wait()
    assert first.json["result"]["content"][0]["text"] == "done"


async def test_requests_of_a_session_are_bounded(autojump_clock):
    """Only requests are limited, so that notifications that end them still arrive."""
    async with serving(Shop(), limits={"streams": 1}) as wire:
        session = await wire.session("2025-03-26")
        first = session.open(call("wait", {"seconds": 0.5}))
        await settled()
        for body in (call("echo", id_=2), [call("echo", id_=2)]):
            done = await session.post(body)
            assert (done.status, done.error) == (503, -32603)
        cancel = message("notifications/cancelled", {"requestId": 1})
        assert (await session.post(cancel)).status == 202
        await first.ended.wait()
        assert (await session.post(call("echo", id_=2))).status == 200


@pytest.mark.parametrize(
    "body",
    [
        message("notifications/nonsense"),
        message("notifications/cancelled", {"requestId": 99}),
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "x"}},
    ],
)
async def test_what_needs_no_answer_is_accepted(autojump_clock, wire, body):
    """The status is 202, without a body."""
    session = await wire.session()
    done = await session.post(body)
    assert (done.status, done.body) == (202, b"")


async def test_both_eras_at_the_same_time(autojump_clock, wire):
    """A request with `_meta` of 2026-07-28 is served by it, even with a session id."""
    session = await wire.session()
    await session.post(call("keep", {"value": "mine"}))
    legacy, modern = session.open(call("keep")), wire.modern(call("wait"), session.headers)
    modern_too = await wire.send_modern(call("echo"), {"mcp-session-id": session.id})
    await legacy.ended.wait()
    await modern.ended.wait()
    assert legacy.json["result"]["content"][0]["text"] == "mine"
    assert "resultType" not in legacy.json["result"]
    assert (modern.status, modern.error) == (400, -32020)  # the version of the session
    assert modern_too.json["result"]["resultType"] == "complete"


async def test_a_call_that_is_cancelled_is_answered_with_nothing(autojump_clock, wire):
    """The stream ends without an event, since the client expects no answer."""
    session = await wire.session()
    running = session.open(call("wait", {"seconds": 0.5}))
    await settled()
    await session.post(message("notifications/cancelled", {"requestId": 1}))
    await running.ended.wait()
    assert (running.status, running.body, running.complete) == (200, b"", True)
    assert running.headers["content-type"] == "text/event-stream"
    assert running.headers["cache-control"] == "no-cache, no-transform"
    assert running.headers["x-accel-buffering"] == "no"


async def test_a_server_may_have_nothing(autojump_clock):
    """A method that is not offered is "not found", as each era defines it."""

    class Bare(Server, name="bare", version="1"):
        pass

    async with serving(Bare()) as wire:
        done = await wire.send_modern(message("tools/list", {}, 1))
        assert (done.status, done.error) == (404, -32601)
        session = await wire.session()
        done = await session.post(message("tools/list", {}, 1))
        assert (done.status, done.error) == (200, -32601)

"""HTTP with authorization: accepted and refused requests, and the owners of sessions and tasks."""

import asyncio
import json
import math
import time

import pytest
import trio
from starlette.applications import Starlette
from starlette.routing import Mount

from noizu_mcp import Server, Tool
from noizu_mcp.auth import (
    AnyVerifier,
    APIKeyVerifier,
    AuthRequest,
    BearerAuth,
    Challenge,
    InsufficientScope,
    Principal,
    StaticVerifier,
    TokenVerifier,
    VerifierUnavailable,
    parse_challenges,
)
from noizu_mcp.transports.http import HttpApp, HttpLimits, HttpOptions
from noizu_mcp.transports.http.server._event_writer import time_left

DOCUMENT = "/.well-known/oauth-protected-resource"
PAGE = {"origin": "https://app.example.com"}


def challenge_of(answer):
    [challenge] = parse_challenges(answer.headers["www-authenticate"])
    assert challenge.scheme == "Bearer"
    return dict(challenge.params)


def call(name, id_=7):
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": name}}


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "PUT"])
async def test_a_request_without_a_token_is_refused(serve_app, bearer, method):
    """Each method is answered with 401 and the metadata URL."""
    async with serve_app(auth=bearer(required_scopes=["docs:read"])) as http:
        answer = await http.send(method)

    assert answer.status == 401
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert challenge_of(answer) == {
        "scope": "docs:read",
        "resource_metadata": f"https://mcp.example.com{DOCUMENT}/mcp",
    }


async def test_clients_hear_at_once_what_the_server_requires(serve_app, bearer):
    """The first challenge and the document have all scopes, so that one token is enough."""
    shared = bearer(required_scopes=["app"])
    async with serve_app(auth=shared) as http:
        answers = [await http.send("POST"), await http.send("POST", token="unknown")]
        missing = await http.send("POST", token="cyd-mails")
        document = await http.send("GET", DOCUMENT)

    assert [challenge_of(each)["scope"] for each in (*answers, missing)] == ["app docs:read"] * 3
    assert document.json["scopes_supported"] == ["app", "docs:read"]
    # Another server with the same `BearerAuth` does not have them.
    with pytest.raises(Challenge) as caught:
        await shared.authenticate(AuthRequest("POST", "/mcp"))
    assert b'scope="app"' in dict(caught.value.headers)[b"www-authenticate"]
    assert json.loads(shared.metadata_documents("/mcp")[DOCUMENT])["scopes_supported"] == ["app"]


async def test_the_small_set_of_the_author_stays_as_it_is(serve_app, bearer):
    """`scopes_supported` has the initial scopes of the author, whatever is required."""
    async with serve_app(auth=bearer(scopes_supported=["basic"])) as http:
        document = await http.send("GET", DOCUMENT)
        answer = await http.send("POST")

    assert document.json["scopes_supported"] == ["basic"]
    assert challenge_of(answer)["scope"] == "docs:read"


def test_a_refresh_token_is_no_matter_of_a_server(bearer):
    """`offline_access` is not in a challenge (2026-07-28 basic/authorization)."""

    class Offline(Server, name="offline", version="1", requires=["read", "offline_access"]):
        pass

    with pytest.raises(ValueError, match="requires must not hold offline_access"):
        HttpApp(Offline(), HttpOptions(auth=bearer()))


async def test_a_page_may_send_each_header_of_a_verifier(serve_app, bearer):
    """A preflight response lists each header of a verifier once."""
    keys = APIKeyVerifier({"k" * 20: Principal(subject="ci")}, header="X-API-Key")
    verifier = AnyVerifier(StaticVerifier({}), keys)
    async with serve_app(auth=bearer(verifier), allowed_origins=[PAGE["origin"]]) as http:
        asked = {"access-control-request-headers": "x-api-key, mcp-param-region", **PAGE}
        answer = await http.send("OPTIONS", headers=asked)

    allowed = answer.headers["access-control-allow-headers"].lower().split(", ")
    assert allowed[-2:] == ["x-api-key", "mcp-param-region"]
    assert len(set(allowed)) == len(allowed)


async def test_a_token_lets_in(serve_app, bearer):
    """Requests of both eras are served, and have the principal."""
    async with serve_app(auth=bearer()) as http:
        modern = await http.stateless("tools/call", {"name": "whoami"}, token="ada-reads")
        session = await http.initialize("bob-writes")
        legacy = await http.send("POST", token="bob-writes", body=call("whoami"), headers=session)

    assert modern.json["result"]["content"][0]["text"] == "ada"
    assert legacy.json["result"]["content"][0]["text"] == "bob"


@pytest.mark.parametrize(
    ("header", "status", "error"),
    [
        ("Bearer unknown", 401, "invalid_token"),
        ("Bearer cyd-mails", 403, "insufficient_scope"),
        ("Bearer two tokens", 400, "invalid_request"),
        ("Basic YTpi", 401, None),
    ],
)
async def test_who_is_not_let_in_hears_why(serve_app, bearer, header, status, error):
    """Each failure has its status and its challenge."""
    async with serve_app(auth=bearer(required_scopes=["docs:read"])) as http:
        answer = await http.send("POST", headers={"authorization": header})

    assert answer.status == status
    assert challenge_of(answer).get("error") == error


class Failing(TokenVerifier):
    """Fails."""

    def __init__(self, error):
        self.error = error

    async def verify(self, token, request):
        raise self.error


@pytest.mark.parametrize(
    ("error", "status"), [(VerifierUnavailable("down"), 503), (KeyError("bug"), 500)]
)
async def test_a_verifier_that_fails_refuses_all_requests(serve_app, bearer, error, status):
    """The status does not blame the token, and there is no challenge."""
    async with serve_app(auth=bearer(Failing(error))) as http:
        answer = await http.stateless("tools/list", token="ada-reads")

    assert answer.status == status
    assert "www-authenticate" not in answer.headers


@pytest.mark.parametrize("answer", [None, {"sub": "ada"}])
async def test_a_verifier_without_a_principal_refuses(serve_app, bearer, answer):
    """No handler runs if a verifier returns anything but a principal."""

    class Giving(TokenVerifier):
        async def verify(self, token, request):
            await trio.lowlevel.checkpoint()
            return answer

    async with serve_app(auth=bearer(Giving())) as http:
        found = await http.stateless("tools/call", {"name": "whoami"}, token="forged")

    assert (found.status, found.body) == (500, b"Internal error\n")


async def test_a_verifier_sees_the_request(serve_app, bearer):
    """It gets method, path, client and each header unchanged."""
    seen = []

    class Watching(TokenVerifier):
        async def verify(self, token, request):
            seen.append(request)
            return Principal(subject="ada")

    async with serve_app(auth=bearer(Watching())) as http:
        await http.send("GET", token="x", headers={"x-tenant": "a"})

    assert (seen[0].method, seen[0].path, seen[0].client) == ("GET", "/mcp", "127.0.0.1")
    assert seen[0].values("x-tenant") == ["a"]


@pytest.mark.parametrize("path", [DOCUMENT, f"{DOCUMENT}/mcp", f"{DOCUMENT}/mcp/"])
async def test_metadata_needs_no_token(serve_app, bearer, path):
    """The document is at the root, and at the path of the endpoint."""
    async with serve_app(auth=bearer()) as http:
        got = await http.send("GET", path)
        head = await http.send("HEAD", path)

    assert (got.status, got.headers["content-type"]) == (200, "application/json")
    assert got.json["resource"] == "https://mcp.example.com/mcp"
    assert got.headers["cache-control"] == "max-age=3600"
    assert (head.status, head.body, head.headers) == (200, b"", got.headers)


async def test_a_resource_behind_a_prefix_has_its_document(serve_app):
    """A proxy removes the prefix; clients may add the last slash."""
    auth = BearerAuth(
        StaticVerifier({}),
        resource="https://mcp.example.com/docs/",
        authorization_servers=["https://login.example.com"],
    )
    async with serve_app(auth=auth) as http:
        answers = [await http.send("GET", f"{DOCUMENT}{path}") for path in ("/docs/", "/docs")]

    assert [each.status for each in answers] == [200, 200]


MOUNTED = BearerAuth(
    StaticVerifier({"ada": Principal(subject="ada", scopes=["docs:read"])}),
    resource="https://mcp.example.com/api/mcp",
    authorization_servers=["https://login.example.com"],
)


@pytest.mark.parametrize("way", ["/.well-known", DOCUMENT, f"{DOCUMENT}/api"])
async def test_a_mounted_application_knows_its_document(serve_app, way):
    """It is found with any handling of the mount path; the endpoint is not there."""
    async with serve_app(auth=MOUNTED) as http:
        mounts = [Mount(path, app=http.app) for path in (way, "/api")]
        http.app = Starlette(routes=mounts)
        challenge = challenge_of(await http.send("POST", "/api/mcp"))
        path = challenge["resource_metadata"].removeprefix("https://mcp.example.com")
        found = await http.send("GET", path)
        posted = await http.send("POST", path, token="ada")
        served = await http.send("POST", "/api/mcp", token="ada")

    assert path == f"{DOCUMENT}/api/mcp"
    assert (found.status, posted.status) == (200, 405)
    assert found.json["resource"] == "https://mcp.example.com/api/mcp"
    assert served.status == 400  # it has no body


@pytest.mark.parametrize(
    ("root", "path"),
    [
        (DOCUMENT, "/api/mcp"),
        (f"{DOCUMENT}/api", "/mcp/"),
        ("/.well-known", "/oauth-protected-resource/api/mcp"),
        ("/.well-known", "/oauth-protected-resource"),
        ("/api", f"{DOCUMENT}/api/mcp"),
        ("/api", f"/api{DOCUMENT}/mcp"),
        ("", f"{DOCUMENT}/api/mcp"),
        (DOCUMENT, f"{DOCUMENT}/api/mcp"),
    ],
)
async def test_a_document_is_known_with_and_without_its_mount_point(serve_app, root, path):
    """ASGI hosts before 2.4 remove the mount path, others keep it."""
    async with serve_app(auth=MOUNTED) as http:
        inner = http.app

        async def mounted(scope, receive, send):
            await inner({**scope, "root_path": root}, receive, send)

        http.app = mounted
        found = await http.send("GET", path)

    assert (found.status, found.headers["content-type"]) == (200, "application/json")


async def test_nothing_else_is_found_by_its_whole_path(serve_app):
    """Other documents, and the endpoint at its full path, are not found."""
    async with serve_app(auth=MOUNTED) as http:
        http.app = Starlette(routes=[Mount("/.well-known", app=http.app)])
        answers = [
            await http.send("GET", path, token="ada")
            for path in (f"{DOCUMENT}/other", "/.well-known/openid-configuration")
        ]

    assert [each.status for each in answers] == [404, 404]


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
async def test_metadata_is_only_read(serve_app, bearer, method):
    """Other methods are answered with 405."""
    async with serve_app(auth=bearer()) as http:
        answer = await http.send(method, DOCUMENT, token="ada-reads")

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_there_is_no_document_without_authorization(serve_app):
    """There is no document, either, for keys without an authorization server."""
    async with serve_app() as http:
        answer = await http.send("GET", DOCUMENT)

    assert answer.status == 404


async def test_pages_of_allowed_origins_may_read(serve_app, bearer):
    """Challenges and documents have CORS headers; a preflight has no token."""
    options = {"auth": bearer(), "allowed_origins": [PAGE["origin"]]}
    async with serve_app(**options) as http:
        answers = [
            await http.send("POST", headers=PAGE),
            await http.send("GET", DOCUMENT, headers=PAGE),
            await http.send("OPTIONS", DOCUMENT, headers=PAGE),
            await http.send("OPTIONS", headers=PAGE),
        ]
        foreign = await http.send("GET", DOCUMENT, headers={"origin": "https://evil.example"})

    assert [each.status for each in answers] == [401, 200, 200, 200]
    for each in answers:
        assert each.headers["access-control-allow-origin"] == PAGE["origin"]
    assert "WWW-Authenticate" in answers[0].headers["access-control-expose-headers"]
    assert foreign.status == 403


async def test_a_session_belongs_to_who_began_it(serve_app, bearer):
    """For others it does not exist; another token of the same user works."""
    async with serve_app(auth=bearer()) as http:
        session = await http.initialize("ada-reads")
        answers = [
            await http.send("POST", token=token, body=call("whoami"), headers=session)
            for token in ("ada-writes", "bob-writes")
        ]
        stranger = await http.send("DELETE", token="bob-writes", headers=session)
        standing = await http.send("GET", token="bob-writes", headers=session)
        nobody = await http.send("POST", body=call("whoami"), headers=session)
        owner = await http.send("DELETE", token="ada-reads", headers=session)

    assert [each.status for each in answers] == [200, 404]
    assert (stranger.status, standing.status) == (404, 404)
    assert (nobody.status, owner.status) == (401, 200)


async def test_each_request_has_its_own_scopes(serve_app, bearer):
    """The token that began the session does not count."""
    async with serve_app(auth=bearer()) as http:
        session = await http.initialize("ada-writes")
        answers = [
            await http.send("POST", token=token, body=call("write"), headers=session)
            for token in ("ada-reads", "ada-writes")
        ]

    assert [each.status for each in answers] == [403, 200]


async def test_init_knows_who_begins_a_session(serve_app, bearer):
    """`ctx.auth` is set in `init`."""
    seen = []

    class Greeting(Server, name="greeting", version="1"):
        async def init(self, ctx):
            seen.append(ctx.auth)

    async with serve_app(Greeting(), auth=bearer()) as http:
        session = await http.initialize("ada-reads")
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        await http.send("POST", token="ada-reads", body=ping, headers=session)
        await trio.testing.wait_all_tasks_blocked()

    assert [who.subject for who in seen] == ["ada"]


async def test_a_missing_scope_is_403_with_a_challenge(serve_app, bearer):
    """It lists the scopes of application, server and tool, in both eras."""
    auth = bearer(required_scopes=["docs:read"])
    async with serve_app(auth=auth) as http:
        session = await http.initialize("ada-reads")
        answers = [
            await http.stateless("tools/call", {"name": "publish"}, token="ada-reads"),
            await http.send("POST", token="ada-reads", body=call("publish"), headers=session),
        ]

    for answer in answers:
        assert (answer.status, answer.headers["content-type"]) == (403, "application/json")
        assert challenge_of(answer) == {
            "error": "insufficient_scope",
            "error_description": "The access token does not allow this",
            "scope": "docs:read docs:write docs:publish",
            "resource_metadata": f"https://mcp.example.com{DOCUMENT}/mcp",
        }
        assert answer.json["id"] == 7
        assert answer.json["error"] == {
            "code": -31403,
            "message": "Insufficient scope: tools/call needs docs:read docs:write docs:publish",
            "data": {"requiredScopes": ["docs:read", "docs:write", "docs:publish"]},
        }


async def test_one_challenge_is_enough(serve_app, bearer):
    """A challenge for scopes of the server includes the scopes of the tool."""
    async with serve_app(auth=bearer()) as http:
        answer = await http.stateless("tools/call", {"name": "write"}, token="cyd-mails")

    assert (answer.status, challenge_of(answer)["scope"]) == (403, "docs:read docs:write")


async def test_a_scope_found_missing_late_is_an_error_in_the_stream(serve_app, bearer):
    """A response that has begun keeps its status."""
    async with serve_app(auth=bearer()) as http:
        params = {"name": "late", "_meta": {"progressToken": 1}}
        answer = await http.stateless("tools/call", params, token="ada-reads")

    assert answer.status == 200
    progress, error = answer.events
    assert progress["method"] == "notifications/progress"
    assert error["error"]["code"] == -31403
    assert error["error"]["data"] == {"requiredScopes": ["docs:read", "docs:late"]}


async def test_in_an_array_it_is_an_error_among_answers(serve_app, bearer):
    """Each request of an array (2025-03-26) has its own answer."""
    async with serve_app(auth=bearer()) as http:
        session = await http.initialize("ada-reads", "2025-03-26")
        body = [call("write", 1), call("whoami", 2)]
        answer = await http.send("POST", token="ada-reads", body=body, headers=session)

    assert answer.status == 200
    assert "www-authenticate" not in answer.headers
    assert "cache-control" not in answer.headers
    answers = {each["id"]: each for each in answer.json}
    assert answers[1]["error"]["code"] == -31403
    assert answers[2]["result"]["content"][0]["text"] == "ada"


async def test_without_authorization_scopes_refuse_everybody(serve_app, caplog):
    """Without an authorization server there is no challenge; the log says what to do."""
    async with serve_app() as http:
        answer = await http.stateless("tools/call", {"name": "write"})
        found = await http.stateless("server/discover")

    assert (answer.status, found.status) == (403, 200)
    assert "www-authenticate" not in answer.headers
    text = "Insufficient scope: tools/call needs docs:read docs:write"
    assert answer.json["error"]["message"] == f"{text}; nobody has verified who is calling"
    assert "serve it with auth= over HTTP, else with principal=" in caplog.text


async def test_sealed_state_belongs_to_who_was_asked(serve_app, bearer):
    """Another user cannot retry with it; the same user can, with another token."""
    asks = {"elicitation": {"form": {}}}
    async with serve_app(auth=bearer()) as http:
        asked = await http.stateless(
            "tools/call", {"name": "book"}, token="ada-reads", capabilities=asks
        )
        result = asked.json["result"]
        answer = {"action": "accept", "content": {"day": "Monday"}}
        params = {
            "name": "book",
            "requestState": result["requestState"],
            "inputResponses": dict.fromkeys(result["inputRequests"], answer),
        }
        answers = [
            await http.stateless("tools/call", params, token=token, capabilities=asks)
            for token in ("bob-writes", "ada-writes")
        ]

    assert answers[0].json["error"] == {"code": -32602, "message": "Invalid requestState"}
    assert answers[1].json["result"]["content"][0]["text"] == "Monday"


async def test_a_task_belongs_to_who_began_it(serve_app, bearer):
    """For others its id is unknown; another token of the same user works."""

    class Slow(Tool, task="required"):
        """Take some time."""

        async def call(self):
            return "done"

    class Tasks(Server, name="tasks", version="1"):
        tools = [Slow]

    knows = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    async with serve_app(Tasks(), auth=bearer()) as http:
        begun = await http.stateless(
            "tools/call", {"name": "slow"}, token="ada-reads", capabilities=knows
        )
        params = {"taskId": begun.json["result"]["taskId"]}
        found = [
            await http.stateless("tasks/get", params, token=token, capabilities=knows)
            for token in ("bob-writes", "ada-writes")
        ]

    assert found[0].json["error"]["code"] == -32602
    assert found[1].json["result"]["taskId"] == params["taskId"]


def for_seconds(seconds, subject="ada"):
    return Principal(subject=subject, scopes=["docs:read"], expires_at=time.time() + seconds)


@pytest.mark.parametrize(("left", "least", "most"), [(600, 595, 600), (5, 30, 30)])
async def test_a_listen_request_ends_with_its_token(
    serve_app, bearer, autojump_clock, left, least, most
):
    """It ends with its result; a token that is about to expire gets half a minute."""
    who = for_seconds(left)
    async with serve_app(auth=bearer(StaticVerifier({"short": who}))) as http:
        start = trio.current_time()
        params = {"notifications": {"toolsListChanged": True}}
        answer = await http.stateless("subscriptions/listen", params, token="short")
        took = trio.current_time() - start

    assert least <= took <= most
    assert answer.events[0]["method"] == "notifications/subscriptions/acknowledged"
    assert answer.events[-1]["result"]["resultType"] == "complete"


async def test_one_principal_cannot_use_up_the_room_of_another(serve_app, bearer):
    """Each principal has its own limit on concurrent requests."""
    params = {"notifications": {"toolsListChanged": True}}
    async with serve_app(auth=bearer(), limits=HttpLimits(streams=1)) as http:
        listening = http.open_stateless("subscriptions/listen", params, token="ada-reads")
        await listening.until(lambda each: each.status == 200)
        found = [
            (await http.stateless("tools/list", {}, token=token)).status
            for token in ("ada-writes", "bob-writes")
        ]
        listening.leave()
        await trio.testing.wait_all_tasks_blocked()
        after = await http.stateless("tools/list", {}, token="ada-writes")

    assert (found, after.status) == ([503, 200], 200)


async def test_a_listen_request_that_opens_late_ends_too(serve_app, bearer, autojump_clock):
    """The server's hook may take longer than the token is valid."""

    class Slow(Server, name="slow", version="1", tool_timeout=None):
        resources = []

        async def read_resource(self, uri, ctx):
            return ""

        async def subscribe(self, uri, ctx):
            await trio.sleep(100)

    auth = bearer(StaticVerifier({"short": for_seconds(40)}))
    async with serve_app(Slow(), auth=auth) as http:
        start = trio.current_time()
        params = {"notifications": {"resourceSubscriptions": ["docs://a"]}}
        answer = await http.stateless("subscriptions/listen", params, token="short")
        took = trio.current_time() - start

    assert 100 <= took <= 131
    assert answer.events[-1]["result"]["resultType"] == "complete"


async def test_a_standing_stream_ends_with_its_token(serve_app, bearer, autojump_clock):
    """The session goes on: another token opens another stream."""
    verifier = StaticVerifier({"short": for_seconds(600), "long": for_seconds(90_000)})
    async with serve_app(auth=bearer(verifier)) as http:
        session = await http.initialize("short")
        start = trio.current_time()
        answer = await http.send("GET", token="short", headers=session)
        took = trio.current_time() - start
        again = http.open("GET", token="long", headers=session)
        await again.until(lambda each: each.status == 200)

    assert 595 <= took <= 600
    assert answer.complete


async def test_a_stream_whose_reader_never_expires_is_to_be_asked_for_again(
    serve_app, bearer, autojump_clock
):
    """It ends after `stream_life`, so that a revoked token can open no other stream."""
    limits = HttpLimits(stream_life=100)
    async with serve_app(auth=bearer(), limits=limits) as http:
        session = await http.initialize("ada-reads")
        start = trio.current_time()
        standing = await http.send("GET", token="ada-reads", headers=session)
        between = trio.current_time()
        params = {"notifications": {"toolsListChanged": True}}
        listening = await http.stateless("subscriptions/listen", params, token="ada-reads")
        took = (between - start, trio.current_time() - between)

    assert (standing.complete, listening.complete) == (True, True)
    assert took == pytest.approx((100, 100), abs=1)


@pytest.mark.parametrize(
    ("principal", "left"),
    [
        (None, math.inf),
        (Principal(subject="ada"), 1000),
        (Principal(subject="ada", expires_at=0.0), 30),
        (Principal(subject="ada", expires_at=1e12), 1000),
    ],
)
def test_how_long_a_stream_may_live(principal, left):
    """Its lifetime is the token's, with a lower and an upper bound."""
    assert time_left(principal, 1000) == left


async def test_a_client_that_leaves_a_standing_stream_is_let_go(serve_app, bearer):
    """The session can be ended at once, with or without an expiring token."""
    async with serve_app(auth=bearer()) as http:
        session = await http.initialize("ada-reads")
        standing = http.open("GET", token="ada-reads", headers=session)
        await standing.until(lambda each: each.status == 200)
        standing.leave()
        await trio.testing.wait_all_tasks_blocked()
        ended = await http.send("DELETE", token="ada-reads", headers=session)

    assert ended.status == 200


async def test_what_is_no_scope_is_a_crash(serve_app, bearer, caplog):
    """The author's mistake is logged, and no header is malformed."""
    async with serve_app(auth=bearer()) as http:
        answer = await http.stateless("tools/call", {"name": "wrong"}, token="ada-reads")

    assert answer.json["error"] == {"code": -32603, "message": "Request handler failed"}
    assert "'two words' is not the name of a scope" in caplog.text


async def test_an_inline_handler_may_refuse(serve_app, bearer):
    """It may raise `InsufficientScope` with one name."""
    async with serve_app(auth=bearer()) as http:
        answer = await http.stateless("tools/call", {"name": "quick"}, token="ada-reads")

    assert (answer.status, challenge_of(answer)["scope"]) == (403, "docs:read docs:quick")


def test_auth_is_a_bearer_auth(docs):
    """Other values are refused when the application is made."""
    with pytest.raises(TypeError, match=r"auth must be a noizu_mcp\.auth\.BearerAuth, not 'token'"):
        HttpApp(docs, HttpOptions(auth="token"))


def test_without_a_lifespan_it_says_so(docs, bearer, caplog):
    """Also on asyncio, where no verifier can run: the error does not blame the verifier."""
    app = HttpApp(docs, HttpOptions(auth=bearer()))
    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", b"Bearer ada-reads")]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    asyncio.run(app(scope, send, send))

    assert sent[0]["status"] == 500
    assert "its host has not run its lifespan" in caplog.text


async def test_a_request_that_waits_for_its_verifier_may_come_too_late(serve_app, bearer):
    """If the application ends meanwhile, the client gets 503."""
    arrived, go = trio.Event(), trio.Event()

    class Slow(TokenVerifier):
        async def verify(self, token, request):
            arrived.set()
            await go.wait()
            return Principal(subject="ada")

    async with serve_app(auth=bearer(Slow())) as http:
        exchange = http.open_stateless("tools/list", token="x")
        with trio.fail_after(60):
            await arrived.wait()
        await http.app.settle()
        go.set()
        await exchange.until(lambda each: each.complete)

    assert exchange.status == 503


async def test_the_extra_scopes_of_a_handler_reach_the_client(serve_app, bearer):
    """A server without registrations may refuse, too."""

    class Own(Server, name="own", version="1"):
        async def call_tool(self, name, args, ctx):
            raise InsufficientScope(["own:call"])

    async with serve_app(Own(), auth=bearer()) as http:
        answer = await http.stateless("tools/call", {"name": "any"}, token="ada-reads")

    assert (answer.status, challenge_of(answer)["scope"]) == (403, "own:call")


async def test_results_are_not_touched(serve_app, bearer):
    """A tool error remains a result with 200 and no challenge."""

    class Bad(Tool):
        """Fail."""

        def call(self):
            raise ValueError("no")

    class Plain(Server, name="plain", version="1"):
        tools = [Bad]

    async with serve_app(Plain(), auth=bearer()) as http:
        answer = await http.stateless("tools/call", {"name": "bad"}, token="cyd-mails")

    assert answer.status == 200
    assert "www-authenticate" not in answer.headers
    assert json.loads(answer.body)["result"]["isError"] is True

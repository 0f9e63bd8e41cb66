"""Authentication of the HTTP client: headers, refusals, redirects, timeouts."""

import pytest
import trio
import trio.testing

from noizu_mcp import AuthError, Http, RequestTimeout, Server, SyncClient, connect
from noizu_mcp.auth import Bearer

from .scripted import EVENTS, Script, modern, serving

DONE = {"content": [{"type": "text", "text": "done"}]}
CHALLENGE = 'Bearer scope="files:read", resource_metadata="https://x/meta"'


class Counting:
    """Numbered tokens; each refusal creates the next one.

    Attributes:
        refusals: The refusals that were handled.
    """

    def __init__(self, most=99):
        self.number, self.most, self.refusals, self.inside = 0, most, [], 0
        self.server = None

    def bind(self, server):
        self.server = server
        return self

    async def headers(self, request):
        assert self.inside == 0
        return {"Authorization": f"Bearer {self.number}"} if self.number else {}

    async def handle(self, refusal):
        self.inside += 1
        await trio.lowlevel.checkpoint()
        self.inside -= 1
        self.refusals.append(refusal)
        if refusal.sent.get("authorization", "Bearer 0") == f"Bearer {self.number}":
            self.number += 1
        return self.number <= self.most


def guarded(wanted, answer, status=401):
    """Answer a request only if it has this header."""

    async def check(heard):
        if heard.headers.get("authorization") == wanted:
            await answer(heard)
        else:
            await heard.say(status, www_authenticate=CHALLENGE)

    return check


async def done(heard):
    await heard.result(DONE)


async def test_a_token_goes_with_every_request():
    """POST, GET and DELETE carry the token."""
    async with serving(Script()) as script:
        async with connect(script.url, auth=Bearer("abc"), version="2025-11-25") as client:
            await client.ping()

    assert {each.method for each in script.heard} >= {"POST", "GET", "DELETE"}
    assert {each.headers.get("authorization") for each in script.heard} == {"Bearer abc"}


async def test_a_strategy_wins_over_other_headers():
    """The strategy's headers replace headers of the target with the same names, and no others."""

    async def headers():
        return {"authorization": "Basic x", "X-Team": "a"}

    async with serving(Script(server_discover=modern, tools_call=done)) as script:
        async with connect(Http(script.url, headers=headers), auth=Bearer("abc")) as client:
            await client.call_tool("echo")

    sent = {(each.headers["authorization"], each.headers["x-team"]) for each in script.heard}
    assert sent == {("Bearer abc", "a")}


async def test_a_refused_token_is_final():
    """The error has the scope and the metadata URL of the challenge."""
    async with serving(Script(server_discover=guarded("never", done))) as script:
        with pytest.raises(AuthError) as caught:
            async with connect(script.url, auth=Bearer("abc")):
                raise AssertionError

    assert len(script.heard) == 1
    assert "answered 401 Said; it wants the scope files:read" in str(caught.value)
    assert str(caught.value).endswith("its metadata is at https://x/meta")


async def test_the_body_of_a_refusal_is_in_the_error():
    """The body of a refusal is read before the strategy is called, and is part of the error."""

    async def refuse(heard):
        await heard.refuse(403, -32600, "the door is closed")

    async with serving(Script(tools_call=refuse)) as script:
        async with connect(script.url, auth=Bearer("abc")) as client:
            with pytest.raises(AuthError, match="answered 403 Said: the door is closed"):
                await client.call_tool("echo")


async def test_without_credentials_the_error_says_what_to_give():
    """Without a strategy the error says how to provide credentials."""
    async with serving(Script(server_discover=guarded("never", done))) as script:
        with pytest.raises(AuthError, match=r"give credentials: connect\(url, auth=OAuth\(\)\)"):
            async with connect(script.url):
                raise AssertionError


async def test_a_refused_request_is_sent_again():
    """A refused request is sent again with new headers, and remains one call for the program."""
    auth = Counting()
    async with serving(Script(tools_call=guarded("Bearer 2", done, 403))) as script:
        async with connect(script.url, auth=auth) as client:
            result = await client.call_tool("echo")

    assert result.text == "done"
    sent = [each.headers.get("authorization") for each in script.of("tools/call")]
    assert sent == [None, "Bearer 1", "Bearer 2"]
    assert [each.attempt for each in auth.refusals] == [1, 2]
    first = auth.refusals[0]
    assert (first.status, first.operation, first.request.method) == (403, "tools/call echo", "POST")
    assert first.request.url == script.url == auth.server.url
    assert first.challenge().params["scope"] == "files:read"
    assert first.challenge("DPoP") is None


async def test_attempts_are_limited():
    """A strategy that always has another token is called a limited number of times."""
    auth = Counting()
    async with serving(Script(tools_call=guarded("never", done))) as script:
        async with connect(script.url, auth=auth) as client:
            with pytest.raises(AuthError, match="answered 401"):
                await client.call_tool("echo")

    assert len(script.of("tools/call")) == 4


async def test_one_refresh_for_many_requests():
    """Requests that fail with the same expired token share one refresh."""
    auth = Counting()
    async with serving(Script(tools_call=guarded("Bearer 1", done))) as script:
        async with connect(script.url, auth=auth) as client, trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(client.call_tool, "echo")

    assert auth.number == 1


async def test_the_time_of_a_login_does_not_count(mock_clock):
    """A login does not count against the timeouts of probes and requests."""

    class Slow(Counting):
        async def handle(self, refusal):
            with refusal.pause():
                mock_clock.jump(100)
                await trio.testing.wait_all_tasks_blocked()
            return await super().handle(refusal)

    async def never(heard):
        mock_clock.jump(3)
        await heard.gone()

    answers = {"tools_call": never, "server_discover": guarded("Bearer 1", modern)}
    async with serving(Script(**answers)) as script:
        async with connect(script.url, auth=Slow(), timeout=2, probe_timeout=1) as client:
            assert client.protocol_version == "2026-07-28"
            with pytest.raises(RequestTimeout):
                await client.call_tool("echo")


async def test_other_time_of_the_credentials_counts(mock_clock):
    """A strategy that hangs is cancelled with its request; the next request calls it again."""

    class Hanging(Counting):
        async def handle(self, refusal):
            if self.refusals:
                return await super().handle(refusal)
            self.refusals.append(refusal)
            mock_clock.jump(3)
            return await trio.sleep_forever()

    async with serving(Script(tools_call=guarded("Bearer 1", done))) as script:
        async with connect(script.url, auth=Hanging(), timeout=2) as client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("echo")
            assert (await client.call_tool("echo")).text == "done"


async def test_a_request_that_waits_for_a_login_is_cancelled_in_silence():
    """An unsent request is cancelled without a message, and other messages do not wait."""
    asked = trio.Event()

    class Person(Counting):
        async def handle(self, refusal):
            asked.set()
            await trio.sleep_forever()

    async with serving(Script(tools_call=guarded("Bearer 1", done))) as script:
        async with connect(script.url, auth=Person(), version="2025-11-25") as client:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.call_tool, "first")
                await asked.wait()
                nursery.start_soon(client.call_tool, "second")
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            await client.ping()

    assert script.of("notifications/cancelled") == []
    assert len(script.of("tools/call")) == 1


async def test_a_request_that_waits_for_a_login_has_its_time_after_it(mock_clock):
    """Requests that wait for a login do not time out before they are sent."""
    asked, go = trio.Event(), trio.Event()

    class Person(Counting):
        async def handle(self, refusal):
            asked.set()
            with refusal.pause():
                await go.wait()
            return await super().handle(refusal)

    async with serving(Script(tools_call=guarded("Bearer 1", done))) as script:
        async with connect(script.url, auth=Person(), timeout=2) as client:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.call_tool, "first")
                await asked.wait()
                nursery.start_soon(client.call_tool, "second")
                await trio.testing.wait_all_tasks_blocked()
                mock_clock.jump(100)
                await trio.testing.wait_all_tasks_blocked()
                go.set()

    assert [each.headers.get("authorization") for each in script.of("tools/call")] == [
        None,
        "Bearer 1",
        "Bearer 1",
    ]


async def test_ending_a_session_needs_no_login():
    """A refused DELETE is not repeated."""
    auth = Counting()
    script = Script(DELETE=guarded("never", done))
    async with serving(script), connect(script.url, auth=auth):
        pass

    assert len(script.of("DELETE")) == 1
    assert auth.refusals == []


async def test_the_stream_of_a_session_gets_credentials_too():
    """A refused GET is sent again; a strategy that fails ends the stream, not the client."""

    class Failing(Counting):
        async def handle(self, refusal):
            if refusal.request.method == "GET" and self.number:
                raise AuthError("nobody is there")
            return await super().handle(refusal)

    opened = trio.Event()

    async def stream(heard):
        await heard.head(kind=EVENTS)
        opened.set()
        await heard.gone()

    async with serving(Script(GET=guarded("Bearer 1", stream))) as script:
        async with connect(script.url, auth=Counting()):
            await opened.wait()
    async with serving(Script(GET=guarded("Bearer 2", stream))) as script:
        async with connect(script.url, auth=Failing()) as client:
            await client.ping()


async def test_an_answer_that_is_read_on_gets_credentials_too():
    """The GET that resumes a response has credentials."""

    async def call(heard):
        await heard.head(kind=EVENTS)
        await heard.event("", id="a-1", retry="1")

    async def read_on(heard):
        await heard.head(kind=EVENTS)
        await heard.event({"jsonrpc": "2.0", "id": 2, "result": DONE})

    async def get(heard):
        if "last-event-id" in heard.headers:
            await guarded("Bearer 1", read_on)(heard)
        else:
            await heard.say(405)

    auth = Counting()
    async with serving(Script(tools_call=call, GET=get)) as script:
        async with connect(script.url, auth=auth, version="2025-11-25") as client:
            assert (await client.call_tool("echo")).text == "done"

    assert [each.operation for each in auth.refusals] == ["tools/call echo"]


async def test_a_refusal_is_no_lost_session():
    """A 401 within a session does not begin a new one."""
    auth = Counting()
    async with serving(Script(tools_call=guarded("Bearer 1", done))) as script:
        async with connect(script.url, auth=auth, version="2025-11-25") as client:
            await client.call_tool("echo")

    assert len(script.of("initialize")) == 1
    assert {each.headers["mcp-session-id"] for each in script.of("tools/call")} == {"s-1"}


async def test_credentials_stay_at_their_origin():
    """Only a redirect within the origin is followed, with the token."""
    async with serving(Script()) as other, serving(Script()) as script:

        async def move(heard):
            await heard.say(307, location=other.url)

        async def within(heard):
            if not heard.headers.get("moved"):
                script.answers.pop("tools_call")
                script.answers["tools_call"] = done
            await heard.say(307, location="/elsewhere")

        script.answers["tools_call"] = within
        async with connect(script.url, auth=Bearer("abc")) as client:
            await client.call_tool("echo")
            script.answers["tools_call"] = move
            with pytest.raises(Exception, match="moved to"):
                await client.call_tool("echo")

    assert other.heard == []
    assert {each.headers["authorization"] for each in script.heard} == {"Bearer abc"}


async def test_a_refusal_that_does_not_end_is_left():
    """The body of a refusal is read for a limited time."""

    async def endless(heard):
        if heard.headers.get("authorization"):
            await done(heard)
            return
        await heard.head(401, kind="text/html", www_authenticate=CHALLENGE)
        with_more = b"x" * 10_000
        try:
            while True:
                await heard.stream.send_all(with_more)
        except trio.BrokenResourceError:
            pass

    async with serving(Script(tools_call=endless)) as script:
        async with connect(script.url, auth=Counting()) as client:
            assert (await client.call_tool("echo")).text == "done"


async def test_a_strategy_that_fails_ends_the_call_with_its_error():
    """The `AuthError` is raised unchanged."""

    class Failing(Counting):
        async def handle(self, refusal):
            raise AuthError("log in first")

    async with serving(Script(tools_call=guarded("Bearer 1", done))) as script:
        async with connect(script.url, auth=Failing()) as client:
            with pytest.raises(AuthError, match=r"^log in first$"):
                await client.call_tool("echo")


async def test_a_malformed_challenge_is_no_challenge():
    """For a malformed challenge the error has only the status."""

    async def refuse(heard):
        await heard.say(401, www_authenticate='Bearer scope="')

    async with serving(Script(tools_call=refuse)) as script, connect(script.url) as client:
        with pytest.raises(AuthError, match=r"answered 401 Said$"):
            await client.call_tool("echo")


def test_plain_code_has_credentials_too():
    """`SyncClient` takes `auth=`; `Http` can be used as a URL."""

    async def main():
        async with serving(Script(tools_call=guarded("Bearer abc", done))) as script:

            def call():
                with SyncClient(Http(script.url), auth=Bearer("abc")) as client:
                    return client.call_tool("echo").text

            return await trio.to_thread.run_sync(call)

    assert trio.run(main) == "done"


class Empty(Server, name="empty", version="1"):
    pass


@pytest.mark.parametrize(
    ("target", "auth", "error", "said"),
    [
        (Empty, Bearer("x"), TypeError, "auth= is for a URL"),
        ("http://127.0.0.1/mcp", "token", TypeError, r"a strategy, such as OAuth\(\) or Bearer"),
        ("http://127.0.0.1/mcp", Bearer, TypeError, "a strategy, such as"),
        ("http://example.com/mcp", Bearer("x"), ValueError, "must be https"),
    ],
)
async def test_what_is_no_strategy(target, auth, error, said):
    """An invalid strategy is refused before anything is sent."""
    with pytest.raises(error, match=said):
        async with connect(target, auth=auth):
            raise AssertionError


@pytest.mark.parametrize("token", ["", "Bearer x", "a b", '"x"', "ä", None])
def test_what_is_no_token(token):
    """The error does not contain the invalid token."""
    with pytest.raises(ValueError, match=r"^token must be") as caught:
        Bearer(token)

    assert "ä" not in str(caught.value)
    assert "secret" not in repr(Bearer("secret"))

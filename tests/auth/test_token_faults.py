"""Clients over real sockets, while tokens are revoked and token endpoints fail, hang and rotate."""

from collections import Counter

import pytest
import trio

from noizu_mcp import AuthError, Server, Tool, connect
from noizu_mcp.auth import (
    BearerAuth,
    HTTPFetcher,
    IntrospectionVerifier,
    InvalidToken,
    MemoryStore,
    OAuth,
    TokenVerifier,
)
from noizu_mcp.testing import serve_authorization, serve_protected


class Echo(Tool):
    """Answer with the text that came."""

    async def call(self, text: str, ctx):
        await trio.lowlevel.checkpoint()
        return f"{text} {ctx.auth.subject}"


class Docs(Server, name="docs", version="1"):
    tools = [Echo]


class Impatient(TokenVerifier):
    """Accepts each token a few times, if its issuer reports it as active."""

    def __init__(self, login, url, uses):
        login.add_client("docs", secret="s")
        self.uses = uses
        self.seen = Counter()
        self._verifier = IntrospectionVerifier(
            login.metadata["introspection_endpoint"],
            client_id="docs",
            client_secret="s",
            issuer=login.issuer,
            audience=url,
            cache_ttl=0,
        )

    async def verify(self, token, request):
        principal = await self._verifier.verify(token, request)
        self.seen[token] += 1
        if self.seen[token] > self.uses:
            raise InvalidToken("it was used too often")
        return principal


class Authorizer:
    """Makes the authorization of a server, by introspection."""

    def __init__(self, login, uses=1000):
        self._login, self._uses = login, uses

    def __call__(self, url):
        self._verifier = Impatient(self._login, url, self._uses)
        issuers = [self._login.issuer]
        return BearerAuth(self._verifier, resource=url, authorization_servers=issuers)

    def refuse_known(self):
        """Refuse every token that was seen so far."""
        for token in self._verifier.seen:
            self._verifier.seen[token] = self._uses


def asked(login, endpoint):
    return sum(each.endpoint == endpoint for each in login.requests)


def grants(login):
    return [each.params["grant_type"] for each in login.requests if each.endpoint == "token"]


async def echo(client, text):
    return (await client.call_tool("echo", {"text": text})).content[0].text


async def test_revoked():
    """A user logs in again after everything was revoked; the call is answered."""
    async with (
        serve_authorization() as login,
        serve_protected(Docs, Authorizer(login)) as url,
        connect(url, auth=OAuth(open_browser=login.open_browser)) as client,
    ):
        assert await echo(client, "one") == "one ada"
        login.revoke_tokens()
        assert await echo(client, "two") == "two ada"
        assert asked(login, "authorize") == 2
    assert grants(login) == ["authorization_code", "refresh_token", "authorization_code"]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_one_refresh_for_many_calls(version):
    """Calls with an expired token are all answered, after one refresh."""
    answers = {}

    async def call(client, number):
        answers[number] = await echo(client, str(number))

    async with serve_authorization() as login:
        authorizer = Authorizer(login)
        auth = OAuth(open_browser=login.open_browser)
        async with (
            serve_protected(Docs, authorizer) as url,
            connect(url, auth=auth, version=version) as client,
            trio.open_nursery() as nursery,
        ):
            authorizer.refuse_known()
            for number in range(20):
                nursery.start_soon(call, client, number)
    assert answers == {number: f"{number} ada" for number in range(20)}
    assert grants(login) == ["authorization_code", "refresh_token"]


async def test_rotation_among_clients():
    """Two clients with one store never use a refresh token twice, which would revoke all."""
    store = MemoryStore()
    async with serve_authorization() as login, serve_protected(Docs, Authorizer(login, 4)) as url:

        async def use():
            auth = OAuth(open_browser=login.open_browser, store=store)
            async with connect(url, auth=auth) as client:
                for number in range(15):
                    assert await echo(client, str(number)) == f"{number} ada"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(use)
            nursery.start_soon(use)
    assert asked(login, "authorize") == 1
    assert Counter(grants(login))["refresh_token"] > 3


async def test_an_endpoint_that_fails():
    """A failure is one exception with the text of the server; the next call is answered."""
    async with serve_authorization() as login:
        authorizer, auth = Authorizer(login), OAuth(open_browser=login.open_browser)
        async with serve_protected(Docs, authorizer) as url, connect(url, auth=auth) as client:
            login.fail("token", status=503, error="temporarily_unavailable")
            authorizer.refuse_known()
            with pytest.raises(AuthError, match="temporarily_unavailable: a fault of the test"):
                await echo(client, "once")
            assert await echo(client, "again") == "again ada"


async def test_an_endpoint_that_hangs():
    """It is one exception, and no call waits for ever."""
    async with serve_authorization() as login, serve_protected(Docs, Authorizer(login)) as url:
        login.hang("token")
        fetcher = HTTPFetcher(timeout=0.2)
        with pytest.raises(AuthError, match=r"/token cannot be reached: no answer within 0\.2 s"):
            async with connect(url, auth=OAuth(open_browser=login.open_browser, fetcher=fetcher)):
                pass

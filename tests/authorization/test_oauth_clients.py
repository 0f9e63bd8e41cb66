"""A user logs in, over real sockets: client, MCP server and authorization server."""

import asyncio
import logging
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest
import trio

from noizu_mcp import AuthError, Server, SyncClient, Tool, aio, connect
from noizu_mcp.auth import FileStore, HTTPFetcher, MemoryStore, OAuth, RequireScopes
from noizu_mcp.testing import serve_authorization, serve_protected


class WhoAmI(Tool):
    """Name the caller."""

    async def call(self, args, ctx):
        return ctx.auth.subject


class Save(Tool, requires=RequireScopes("docs:write")):
    """Save something."""

    async def call(self, args, ctx):
        return "saved"


class Docs(Server, name="docs", version="1"):
    tools = [WhoAmI, Save]


@asynccontextmanager
async def world(**options):
    """Serve an authorization server and an MCP server; yields the former, and the MCP URL."""
    with trio.fail_after(120):
        async with AsyncExitStack() as stack:
            login = await stack.enter_async_context(serve_authorization(**options))
            auth_for = partial(login.auth_for, required_scopes=["docs:read"])
            url = await stack.enter_async_context(serve_protected(Docs, auth_for))
            yield login, url


def logins(login):
    return [each.params.get("scope") for each in login.requests if each.endpoint == "authorize"]


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_person_logs_in(version):
    """One login is enough for all requests; a tool that needs more scopes causes another."""
    async with world() as (login, url):
        auth = OAuth(open_browser=login.open_browser)
        async with connect(url, auth=auth, version=version) as client:
            assert (await client.call_tool("who_am_i")).text == "ada"
            assert logins(login) == ["docs:read"]
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(client.call_tool, "save")
            assert (await client.call_tool("save")).text == "saved"
        async with connect(url, auth=auth, version=version) as client:
            assert (await client.call_tool("save")).text == "saved"

    assert logins(login) == ["docs:read", "docs:read docs:write"]


async def test_a_scope_that_is_not_granted():
    """The call fails with one exception that says so; other calls go on."""
    async with (
        world(approve=lambda params: "write" not in params["scope"]) as (login, url),
        connect(url, auth=OAuth(open_browser=login.open_browser)) as client,
    ):
        with pytest.raises(AuthError, match="did not log in: access_denied"):
            await client.call_tool("save")
        assert (await client.call_tool("who_am_i")).text == "ada"


async def test_a_store_outlives_the_program(tmp_path):
    """The next program needs no login."""
    async with world() as (login, url):
        for _ in range(2):
            auth = OAuth(
                store=FileStore(tmp_path / "credentials.json"), open_browser=login.open_browser
            )
            async with connect(url, auth=auth) as client:
                assert (await client.call_tool("who_am_i")).text == "ada"
        assert len(logins(login)) == 1
        assert await auth.forget(url)
        async with connect(url, auth=auth):
            assert len(logins(login)) == 2


PROGRAM = """\
import sys, trio
from noizu_mcp import connect
from noizu_mcp.auth import FileStore, OAuth
async def main(url, path):
    auth = OAuth(store=FileStore(path), open_browser=None)
    async with connect(url, auth=auth) as client:
        print((await client.call_tool("who_am_i")).text)
trio.run(main, *sys.argv[1:])
"""


@pytest.mark.slow
async def test_processes_renew_a_token_once(tmp_path):
    """Using a refresh token twice would end the login of all processes."""
    store = FileStore(tmp_path / "credentials.json")
    async with world() as (login, url):
        auth = OAuth(store=store, open_browser=login.open_browser)
        async with connect(url, auth=auth):
            pass
        key = f"login {url}"
        stored = await store.load(key)
        stored["tokens"]["renew_at"] = 0
        await store.save(key, stored)
        printed = []

        async def run():
            command = [sys.executable, "-c", PROGRAM, url, str(store.path)]
            done = await trio.run_process(command, capture_stdout=True)
            printed.append(done.stdout)

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(run)

    assert printed == [b"ada\n"] * 4
    grants = [each.params["grant_type"] for each in login.requests if each.endpoint == "token"]
    assert grants == ["authorization_code", "refresh_token"]


async def test_nothing_secret_is_logged(caplog):
    """No token, code, verifier or state is logged, at any level, also in failures."""
    store = MemoryStore()
    with caplog.at_level(logging.DEBUG):
        async with world() as (login, url):
            auth = OAuth(open_browser=login.open_browser, store=store)
            async with connect(url, auth=auth) as client:
                await client.call_tool("who_am_i")
            await auth.forget(url)
            login.fail("token", status=500, times=9)
            with pytest.raises(AuthError) as caught:
                async with connect(url, auth=auth):
                    raise AssertionError

    secrets = set()
    for each in login.requests:
        names = ("code", "code_verifier", "state", "token", "refresh_token")
        secrets |= {each.params[name] for name in names if name in each.params}
    assert len(secrets) >= 6
    said = caplog.text + str(caught.value)
    assert [each for each in secrets if each in said] == []


async def test_a_token_endpoint_that_hangs():
    """The call ends with one exception, after the fetcher's timeout."""

    class Impatient:
        async def fetch(self, request):
            timeout = 0.05 if request.url.endswith("/token") else 60
            return await HTTPFetcher(timeout=timeout).fetch(request)

    async with world() as (login, url):
        login.hang("token")
        auth = OAuth(open_browser=login.open_browser, fetcher=Impatient())
        with pytest.raises(AuthError, match="token cannot be reached: no answer within"):
            async with connect(url, auth=auth):
                raise AssertionError


async def test_leaving_during_a_login():
    """A client that is cancelled during a login ends at once."""
    asked = trio.Event()

    async def open_browser(url):
        asked.set()
        await trio.sleep_forever()

    async with world() as (_, url), trio.open_nursery() as nursery:

        async def run():
            async with connect(url, auth=OAuth(open_browser=open_browser)):
                raise AssertionError

        nursery.start_soon(run)
        await asked.wait()
        nursery.cancel_scope.cancel()


async def test_plain_code_and_asyncio():
    """`SyncClient`, and `aio.connect` with a browser on the loop of the program, can log in."""
    async with world() as (login, url):

        def plain():
            with SyncClient(url, auth=OAuth(open_browser=login.open_browser)) as client:
                return client.call_tool("who_am_i").text

        async def open_browser(address):
            await asyncio.sleep(0)
            return login.open_browser(address)

        async def program():
            auth = OAuth(open_browser=open_browser)
            async with aio.connect(url, auth=auth) as client:
                one = (await client.call_tool("who_am_i")).text
            servers, own = {"docs": {"url": url}}, {"docs": {"auth": auth}}
            async with aio.connect_all(servers, per_server=own) as clients:
                return one + (await clients["docs"].call_tool("who_am_i")).text

        assert await trio.to_thread.run_sync(plain) == "ada"
        assert await trio.to_thread.run_sync(asyncio.run, program()) == "adaada"

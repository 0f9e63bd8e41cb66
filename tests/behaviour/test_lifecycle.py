"""The beginning of a connection, in either era."""

import pytest

from noizu_mcp import ConnectionClosed

HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
ALL = [STATELESS, "2025-11-25", "2025-06-18", "2025-03-26"]

handshake = pytest.mark.parametrize("revision", HANDSHAKE, indirect=True)
stateless = pytest.mark.parametrize("revision", [STATELESS], indirect=True)


async def test_the_first_answer_says_who_serves_and_what(opened, revision):
    """`initialize` and `server/discover` have the server info with the revision's fields."""
    async with opened("Kitchen", start=False) as wire:
        result = await wire.start()
    assert result["capabilities"] == {"logging": {}, "tools": {"listChanged": True}}
    assert result["instructions"] == "Try everything."
    if revision == STATELESS:
        assert result["supportedVersions"] == ALL
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
        info = result["_meta"]["io.modelcontextprotocol/serverInfo"]
    else:
        assert result["protocolVersion"] == revision
        info = result["serverInfo"]
    fields = {
        "2025-03-26": {"name", "version"},
        "2025-06-18": {"name", "version", "title"},
    }
    everything = {"name", "version", "title", "description", "websiteUrl", "icons"}
    assert set(info) == fields.get(revision, everything)
    assert (info["name"], info["version"]) == ("kitchen", "1.0")


async def test_capabilities_are_what_is_offered(opened, revision):
    """A server without tools neither declares them nor has their methods."""
    async with opened("Empty", start=False) as wire:
        result = await wire.start()
        assert result["capabilities"] == {"logging": {}}
        assert "instructions" not in result
        for method in ("tools/list", "tools/call"):
            answer = await wire.ask(method, {"name": "x"})
            assert answer["error"] == {"code": -32601, "message": f"Method not found: {method}"}


async def test_overrides_are_capabilities(opened):
    """A server with only an override of its tools declares tools."""
    async with opened("Overriding", start=False) as wire:
        assert (await wire.start())["capabilities"]["tools"] == {"listChanged": True}


@handshake
async def test_an_unknown_version_gets_the_latest_with_a_handshake(opened):
    """An unknown version is answered with the latest that has a handshake."""
    for asked in ("1999-01-01", STATELESS):
        async with opened("Kitchen", start=False) as wire:
            answer = await wire.initialize(asked)
            assert answer["result"]["protocolVersion"] == "2025-11-25"


@handshake
async def test_requests_wait_for_the_handshake(opened, revision, transport):
    """Before `initialize` and `notifications/initialized` only ping is answered."""
    async with opened("Kitchen", start=False) as wire:
        early = await wire.ask("tools/list")
        if transport == "http":  # every other request names a session
            assert "Mcp-Session-Id" in early["error"]["message"]
        else:
            assert early["error"]["code"] == -32602
            assert early["error"]["data"]["supported"] == ALL
            assert (await wire.ask("ping"))["result"] == {}
        await wire.initialize()
        half = await wire.ask("tools/list")
        assert half["error"] == {"code": -32600, "message": "Session not initialized"}
        assert (await wire.ask("ping"))["result"] == {}
        await wire.notify("notifications/initialized")
        assert "result" in await wire.ask("tools/list")
        again = await wire.initialize()
        if transport == "http":  # it begins another session
            assert "result" in again
            return
        assert again["error"] == {"code": -32600, "message": "Already initialized"}


@handshake
async def test_initialize_without_a_version_is_invalid(opened):
    """`initialize` requires a version; the client may try again."""
    async with opened("Kitchen", start=False) as wire:
        assert (await wire.ask("initialize", {}))["error"]["code"] == -32602
        assert "result" in await wire.initialize()


@stateless
async def test_every_request_carries_its_context(opened, transport):
    """Without the two keys, or with another version, a request of 2026-07-28 is refused."""
    async with opened("Kitchen", start=False) as wire:
        prefix = "io.modelcontextprotocol/"
        version = {f"{prefix}protocolVersion": STATELESS}
        capabilities = {f"{prefix}clientCapabilities": {}}
        for meta in (version, capabilities, {**version, f"{prefix}clientCapabilities": []}):
            message = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": meta}}
            await wire.send(message)
            error = (await wire.answer(7))["error"]
            if transport == "http" and meta is capabilities:  # no version, so no header either
                assert error["code"] == -32020
                continue
            assert error["code"] == -32602
            assert error["data"]["supported"] == ALL
        meta = {f"{prefix}protocolVersion": "2099-01-01", **capabilities}
        for method in ("tools/list", "server/discover", "ping"):
            await wire.send(
                {"jsonrpc": "2.0", "id": 8, "method": method, "params": {"_meta": meta}}
            )
            error = (await wire.answer(8))["error"]
            assert error["code"] == -32022
            assert error["data"] == {"supported": ALL, "requested": "2099-01-01"}
        bare = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}
        await wire.send({**bare, "params": {"_meta": {**version, **capabilities}}})
        assert "result" in await wire.answer(9)


@stateless
@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "nope"])
async def test_methods_of_the_other_era_do_not_exist(kitchen, method):
    """Methods of the handshake era do not exist on 2026-07-28."""
    answer = await kitchen.ask(method, {"protocolVersion": STATELESS})
    assert answer["error"]["code"] == -32601


@handshake
async def test_methods_of_2026_07_28_do_not_exist_in_a_handshake(kitchen):
    """Neither methods of the stateless era nor unknown ones exist in a session."""
    for method in ("server/discover", "subscriptions/listen", "resources/list", "nope"):
        assert (await kitchen.ask(method))["error"]["code"] == -32601


@handshake
async def test_init_runs_before_any_request_and_ping_does_not_wait(opened, revision):
    """Requests wait for `init`, pings do not, and timeouts are paused."""
    async with opened("Welcoming", start=False) as wire:
        await wire.initialize()
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        get = wire.message("tools/call", {"name": "get", "arguments": {"key": "client"}})
        unknown = wire.message("tools/call", {"name": "nope"})
        slow = wire.message("tools/call", {"name": "too_slow"})
        ping = wire.message("ping")
        await wire.send(initialized, get, unknown, slow, ping)
        assert (await wire.answer(ping["id"]))["result"] == {}
        assert wire.answers == {}
        wire.switch(STATELESS)
        assert await wire.text("open") == "opened"
        wire.switch(revision)
        answer = await wire.answer(get["id"])
        assert answer["result"]["content"][0]["text"] == "client=wire"
        assert (await wire.answer(unknown["id"]))["error"]["code"] == -32602
        answer = await wire.answer(slow["id"])
        assert answer["result"]["content"][0]["text"] == "Tool execution timed out"
        assert (await wire.notice("notifications/message"))["data"] == "hello"
        assert (await wire.notice("notifications/message"))["data"] == "from a thread"
        assert wire.notices == []
        assert "no request id" in await wire.text("get", {"key": "id"})


@stateless
async def test_init_is_no_part_of_2026_07_28(opened):
    """Stateless requests do not wait for a session."""
    async with opened("Welcoming") as wire:
        assert await wire.text("get", {"key": "client"}) == "client=None"


@handshake
async def test_a_failed_init_ends_the_session(opened, revision, transport):
    """Requests that waited for it get an error; then the server closes the connection."""
    async with opened("Unwelcoming") as wire:
        call = await wire.begin_call("quick")
        wire.switch(STATELESS)
        assert await wire.text("open") == "opened"
        wire.switch(revision)
        answer = await wire.answer(call)
        assert answer["error"]["code"] == -32603
        if transport == "http":
            with pytest.raises(ConnectionClosed, match="has ended the session"):
                await wire.ask("tools/list")
            return
        assert answer["error"]["message"] == "The session could not be set up"
        assert await wire.end() == []


async def test_both_eras_share_one_pipe(opened, revision):
    """A session and stateless requests share one connection, each with its own forms."""
    async with opened("Kitchen") as wire:
        session = "2025-06-18" if revision == STATELESS else revision
        wire.switch(session if wire.stateless else STATELESS)
        await wire.start()
        ids = []
        for each in (STATELESS, session, STATELESS, session):
            wire.switch(each)
            ids.append((each, await wire.begin_call("about")))
        for each, id_ in ids:
            wire.switch(each)
            (block,) = wire.bare((await wire.answer(id_))["result"])["content"]
            assert f'"version":"{each}"' in block["text"]


async def test_our_client_knows_the_server(connected, revision):
    """The client has the server info."""
    async with connected("Kitchen") as client:
        assert client.protocol_version == revision
        assert client.server_info.name == "kitchen"
        assert client.instructions == "Try everything."
        assert client.capabilities.has("tools.listChanged")
        await client.ping()


async def test_our_client_agrees_on_the_latest_revision(connected):
    """By default it only sends `server/discover`."""
    async with connected("Kitchen", version=None) as client:
        assert client.protocol_version == STATELESS
        sent = [
            message["method"] for direction, message in client.recorder.log if direction == "sent"
        ]
        assert sent == ["server/discover"]

"""The state of 2026-07-28 on the wire: every invalid state gets the same error."""

import base64
from contextlib import asynccontextmanager

import pytest

pytestmark = pytest.mark.parametrize("revision", ["2026-07-28"], indirect=True)

INVALID = {"code": -32602, "message": "Invalid requestState"}


@pytest.fixture
async def asker(opened, loaded):
    async with opened("Asker", start=False) as wire:
        wire.capabilities = loaded("asking").EVERYTHING
        await wire.start()
        yield wire


async def begin(wire, method, params):
    """Send a request that asks; return what a retry adds to its params."""
    result = (await wire.ask(method, params))["result"]
    answer = {"action": "accept", "content": {"name": "Ann"}}
    responses = dict.fromkeys(result["inputRequests"], answer)
    return {"inputResponses": responses, "requestState": result["requestState"]}


def script(*ops):
    return {"name": "script", "arguments": {"ops": list(ops)}}


async def refused(wire, method, params):
    """Send a request with an invalid state."""
    answer = await wire.ask(method, params)
    assert answer == {"jsonrpc": "2.0", "id": answer["id"], "error": INVALID}


async def test_a_state_is_good_for_one_request(asker):
    """It is invalid for other arguments, another tool, or another method."""
    call = script(["elicit", "a"])
    more = await begin(asker, "tools/call", call)
    await refused(asker, "tools/call", {**script(["elicit", "b"]), **more})
    await refused(asker, "tools/call", {**script(["elicit", "a"], ["step", "s"]), **more})
    await refused(asker, "tools/call", {"name": "name", "arguments": {}, **more})
    await refused(asker, "tools/call", {**call, "more": 1, **more})
    await refused(asker, "prompts/get", {"name": "script", "arguments": {}, **more})
    await refused(asker, "prompts/get", {"name": "asked", **more})
    await refused(asker, "resources/read", {"uri": "ask://one", **more})
    assert await asker.text("done") == "[]"
    done = await asker.ask("tools/call", {**call, **more})
    assert done["result"]["resultType"] == "complete"


async def test_states_of_prompts_and_resources(asker):
    """They are bound to their requests like states of tools."""
    more = await begin(asker, "resources/read", {"uri": "ask://many/x"})
    await refused(asker, "resources/read", {"uri": "ask://many/y", **more})
    await refused(asker, "resources/read", {"uri": "ask://one", **more})
    assert "result" in await asker.ask("resources/read", {"uri": "ask://many/x", **more})
    params = {"name": "asked", "arguments": {"by_hand": "x"}}
    more = await begin(asker, "prompts/get", params)
    await refused(asker, "prompts/get", {"name": "asked", "arguments": {"by_hand": "y"}, **more})
    await refused(asker, "prompts/get", {"name": "asked", **more})
    assert "result" in await asker.ask("prompts/get", {**params, **more})


async def test_what_a_state_is_not_bound_to(asker):
    """The order of keys, the id and `_meta` may differ in the retry."""
    params = {"name": "script", "arguments": {"ops": [["elicit", "a"]], "x": {"a": 1, "b": 2}}}
    more = await begin(asker, "tools/call", params)
    other = {"arguments": {"x": {"b": 2, "a": 1}, "ops": [["elicit", "a"]]}, "name": "script"}
    id_ = await asker.begin("tools/call", {**more, **other}, id_="another", progressToken="p")
    assert (await asker.answer(id_))["result"]["resultType"] == "complete"


async def test_a_state_that_was_changed(asker):
    """Any changed part, and any text that never was a state, is refused."""
    call = script(["elicit", "a"])
    more = await begin(asker, "tools/call", call)
    state = more["requestState"]
    raw = base64.urlsafe_b64decode(state + "==")
    for place in (0, 3, 4, 15, 16, len(raw) // 2, len(raw) - 17, len(raw) - 1):
        changed = bytes([*raw[:place], raw[place] ^ 1, *raw[place + 1 :]])
        text = base64.urlsafe_b64encode(changed).rstrip(b"=").decode()
        await refused(asker, "tools/call", {**call, **more, "requestState": text})
    for garbage in ("", "x", "é", "A" * 100, state[:-4], state + "AAAA", 5, [], {}, True):
        await refused(asker, "tools/call", {**call, **more, "requestState": garbage})
    assert "result" in await asker.ask("tools/call", {**call, **more, "requestState": None})
    assert "result" in await asker.ask("tools/call", {**call, **more})


@pytest.mark.parametrize("transport", ["stdio"], indirect=True)
async def test_a_state_of_another_server(opened, asker):
    """Without shared keys each process has its own."""
    async with opened("Asker", start=False) as other:
        other.capabilities = asker.capabilities
        await other.start()
        more = await begin(other, "tools/call", script(["elicit", "a"]))
        await refused(asker, "tools/call", {**script(["elicit", "a"]), **more})


async def test_nodes_that_share_keys(opened, loaded):
    """A retry may go to another node, also during a rotation of keys."""
    call = script(["elicit", "a"], ["step", "s"], ["elicit", "b"])

    @asynccontextmanager
    async def node(name):
        async with opened(name, start=False) as wire:
            wire.capabilities = loaded("asking").EVERYTHING
            await wire.start()
            yield wire

    async with node("OldNode") as wire:
        more = await begin(wire, "tools/call", call)
    async with node("NewNode") as wire:
        more = await begin(wire, "tools/call", {**call, **more})
        assert await wire.text("done") == '["s"]'
    async with node("OldNode") as wire:
        await refused(wire, "tools/call", {**call, **more})
    async with node("NewNode") as wire:
        done = await wire.ask("tools/call", {**call, **more})
        assert done["result"]["resultType"] == "complete"
        assert await wire.text("done") == "[]"


async def test_states_expire(opened, asker):
    """After the expiry the call must be made again."""
    async with opened("Forgetting", start=False) as wire:
        wire.capabilities = asker.capabilities
        await wire.start()
        call = script(["elicit", "a"])
        more = await begin(wire, "tools/call", call)
        await refused(wire, "tools/call", {**call, **more})


@pytest.mark.parametrize("transport", ["memory"], indirect=True)
async def test_the_clock_of_a_server(asker):
    """A state expires by the clock of the server."""
    now = [1000.0]
    asker.connection.running.server.sealer._clock = lambda: now[0]
    call = script(["elicit", "a"])
    more = await begin(asker, "tools/call", call)
    now[0] += 3599
    assert "result" in await asker.ask("tools/call", {**call, **more})
    now[0] += 1
    await refused(asker, "tools/call", {**call, **more})

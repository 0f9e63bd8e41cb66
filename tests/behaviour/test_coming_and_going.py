"""Tools of a provider that appear and vanish, and a mounted server: on every revision."""

import pytest
import trio

STATELESS = "2026-07-28"
CHANGED = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


@pytest.fixture
async def workshop(opened, revision):
    """Serve the workshop to a client that receives changes."""
    async with opened("Workshop") as wire:
        if revision == STATELESS:
            wanted = {"toolsListChanged": True, "resourceSubscriptions": ["store+stock://all"]}
            await wire.begin("subscriptions/listen", {"notifications": wanted}, id_="l")
            await wire.notice("notifications/subscriptions/acknowledged")
        yield wire


async def skills(wire):
    """List the skills, with their descriptions."""
    tools = (await wire.ask("tools/list"))["result"]["tools"]
    return {
        tool["name"]: tool["description"] for tool in tools if tool["name"].startswith("skill:")
    }


async def test_a_skill_appears_changes_and_vanishes(workshop):
    """Each change sends a notice, and the next list is new; a removed skill is unknown."""
    for count, text in ((1, "[dynamic] version 0"), (2, "[dynamic] version 1")):
        await workshop.call("learn", {"name": "a b", "count": count})
        await workshop.notice(CHANGED)
        assert await skills(workshop) == {"skill:a b": text}
        assert await workshop.text("skill:a b", {"x": 1}) == "ran {'x': 1}"
    await workshop.call("forget", {"name": "a b"})
    answer = await workshop.ask("tools/call", {"name": "skill:a b", "arguments": {}})
    assert answer["error"] == {"code": -32602, "message": "Unknown skill: a b"}
    await workshop.notice(CHANGED)
    assert await skills(workshop) == {}


async def test_a_storm(workshop):
    """A thousand changes cause few notices, and the last list is right."""
    await workshop.call("learn", {"name": "storm", "count": 1000})
    await workshop.notice(CHANGED)
    await workshop.notice(CHANGED)
    assert await skills(workshop) == {"skill:storm": "[dynamic] version 999"}
    await workshop.is_alive()
    assert len([each for each in workshop.notices if each["method"] == CHANGED]) <= 3


async def test_a_call_outlives_its_skill(workshop):
    """A call whose skill is removed meanwhile ends normally."""
    await workshop.call("learn", {"name": "slow"})
    await workshop.call("hold", {"key": "k"})
    # Otherwise the provider is asked once more, and the call begins later.
    assert "slow" in str(await skills(workshop))
    id_ = await workshop.begin_call("skill:slow", {"wait": "k"})
    await workshop.is_alive()
    await workshop.call("forget", {"name": "slow"})
    assert await skills(workshop) == {}
    await workshop.call("release", {"key": "k"})
    with trio.fail_after(60):
        answer = await workshop.answer(id_)
    assert answer["result"]["content"][0]["text"] == "ran {'wait': 'k'}"


async def test_a_mounted_server(workshop):
    """Its tools, prompts, resources and templates have prefixed names."""
    assert await workshop.text("store_count") == "store open everything"
    for uri, text in (
        ("store+stock://all", "everything"),
        ("store+stock://nail/count", "one nail"),
    ):
        read = await workshop.ask("resources/read", {"uri": uri})
        assert [(each["uri"], each["text"]) for each in read["result"]["contents"]] == [(uri, text)]
    got = await workshop.ask("prompts/get", {"name": "store_order", "arguments": {"what": "nails"}})
    assert got["result"]["messages"][0]["content"]["text"] == "store: order nails"
    listed = (await workshop.ask("resources/templates/list"))["result"]["resourceTemplates"]
    assert [each["uriTemplate"] for each in listed] == ["store+stock://{item}/count"]


async def test_notices_of_a_mounted_server(workshop, revision):
    """Clients are notified of its changes, with the prefixed names."""
    if revision != STATELESS:
        await workshop.ask("resources/subscribe", {"uri": "store+stock://all"})
    await workshop.call("store_update")
    assert (await workshop.notice(UPDATED))["uri"] == "store+stock://all"
    await workshop.call("store_extend")
    await workshop.notice(CHANGED)
    assert await workshop.text("store_more_count") == "store open everything"

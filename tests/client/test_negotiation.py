"""Negotiation of the revision: probes, handshakes, refusals, silence."""

import json

import pytest
import trio

from noizu_mcp import ConnectionClosed, McpError, ProtocolError, RequestTimeout, connect
from noizu_mcp.engine import single_failure
from noizu_mcp.transports import memory_pair

from .conftest import DISCOVERED, INITIALIZED

VERSIONS = ["2026-07-28", "2025-11-25"]


async def test_a_modern_server_needs_no_handshake(scripted):
    """One `server/discover`, and the client knows everything."""
    async with scripted() as (client, script):
        assert client.protocol_version == "2026-07-28"
        assert client.server_info.name == "scripted"
        assert client.instructions is None
        assert [each["method"] for each in script.received] == ["server/discover"]


@pytest.mark.parametrize(
    "answer",
    [
        Exception(-32601, "Method not found"),
        Exception(-32602, "no params"),
        Exception(-32600, "not initialized"),
        Exception(-32000, "whatever"),
        Exception(1, "whatever"),
    ],
)
async def test_any_other_error_means_a_handshake(scripted, answer):
    """Old servers answer an unknown method in many ways."""
    async with scripted({"server/discover": answer}) as (client, script):
        assert client.protocol_version == "2025-11-25"
        assert client.server_info.name == "scripted"
        await script.until("notifications/initialized")


async def test_silence_means_a_handshake(scripted, autojump_clock):
    """A server that never answers the probe is old; a late answer to it changes nothing."""
    start = trio.current_time()
    async with scripted({"server/discover": None}, probe_timeout=3) as (client, script):
        assert trio.current_time() - start == pytest.approx(3)
        probe = script.received[0]["id"]
        await script.say(id=probe, result={"late": True})
        assert client.protocol_version == "2025-11-25"
        assert [each["method"] for each in script.received][:3] == [
            "server/discover",
            "notifications/cancelled",
            "initialize",
        ]


async def test_a_request_timeout_within_the_probe_is_silence_too(scripted, autojump_clock):
    """A client that gives each request less than the probe has goes on to shake hands."""
    start = trio.current_time()
    async with scripted({"server/discover": None}, probe_timeout=9, timeout=2) as (client, _):
        assert trio.current_time() - start == pytest.approx(2)
        assert client.protocol_version == "2025-11-25"


async def test_a_version_in_common_is_chosen_from_the_error(scripted):
    """`-32022` names what the server speaks: the client shakes hands with the best of it."""
    answers = {
        "server/discover": Exception(-32022, "no", {"supported": ["2025-06-18", "2024-11-05"]}),
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "serverInfo": {"name": "s", "version": "0"},
        },
    }
    async with scripted(answers) as (client, script):
        assert client.protocol_version == "2025-06-18"
        assert script.received[1]["params"]["protocolVersion"] == "2025-06-18"


@pytest.mark.parametrize(
    "data", [{"supported": ["2099-01-01"]}, {"supported": VERSIONS[:1]}, {"supported": 5}, 5]
)
async def test_nothing_in_common(scripted, data):
    """Then there is nothing to talk about."""
    with pytest.raises(ProtocolError, match="no protocol version in common"), single_failure():
        async with scripted({"server/discover": Exception(-32022, "no", data)}):
            raise AssertionError


async def test_a_pinned_version_is_the_only_one(scripted):
    """With `version=` there is no probe and no way around."""
    async with scripted(version="2025-11-25") as (client, script):
        assert script.received[0]["method"] == "initialize"
        assert client.protocol_version == "2025-11-25"
    cases = [
        ("2025-06-18", {}, "the server wants protocol version '2025-11-25'"),
        (
            "2026-07-28",
            {"server/discover": Exception(-32601, "Method not found")},
            "the server does not serve 2026-07-28: Method not found",
        ),
    ]
    for version, answers, text in cases:
        with pytest.raises(ProtocolError, match=text), single_failure():
            async with scripted(answers, version=version):
                raise AssertionError
    with pytest.raises(ValueError, match="no revision '1999-01-01'; there are:"), single_failure():
        async with scripted(version="1999-01-01"):
            raise AssertionError


async def test_a_version_that_nobody_asked_for(scripted):
    """A server that answers `initialize` with an unknown version is left."""
    answers = {
        "server/discover": Exception(-32601, "no"),
        "initialize": {"protocolVersion": "1999-01-01"},
    }
    text = "wants protocol version '1999-01-01'"
    with pytest.raises(ProtocolError, match=text), single_failure():
        async with scripted(answers):
            raise AssertionError


async def test_a_server_that_never_answers(autojump_clock):
    """The timeout of the client holds for the handshake; `initialize` is not cancelled."""
    ours, theirs = memory_pair()
    with pytest.raises(RequestTimeout, match="initialize was not answered"), single_failure():
        async with connect(ours, version="2025-11-25", timeout=4):
            raise AssertionError
    assert trio.current_time() > 3.9
    with trio.fail_after(5):
        arrived = await theirs.receive()
    assert [json.loads(each.data)["method"] for each in arrived] == ["initialize"]


async def test_a_server_that_goes_at_once():
    """The end of the stream is one `ConnectionClosed`."""
    ours, theirs = memory_pair()
    await theirs.aclose()
    with pytest.raises(ConnectionClosed):
        async with connect(ours):
            raise AssertionError


@pytest.mark.parametrize(
    "answer",
    [
        {"_meta": 5, "capabilities": {}},
        {"_meta": {"io.modelcontextprotocol/serverInfo": None}},
    ],
)
async def test_a_server_may_hide_who_it_is(scripted, answer):
    """Its name is a courtesy (2026-07-28 `basic/index`)."""
    answer = {"supportedVersions": VERSIONS, **answer}
    async with scripted({"server/discover": answer}) as (client, _):
        assert client.protocol_version == "2026-07-28"
        assert (client.server_info.name, client.server_info.version) == ("unknown", "")


@pytest.mark.parametrize(
    "answer",
    [
        {"capabilities": 5},
        {"_meta": {"io.modelcontextprotocol/serverInfo": 5}},
        {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "no version"}}},
    ],
)
async def test_a_server_that_breaks_the_protocol(scripted, answer):
    """An answer that breaks the specification is a `ProtocolError`."""
    answer = {"supportedVersions": VERSIONS, **answer}
    with pytest.raises(ProtocolError), single_failure():
        async with scripted({"server/discover": answer}):
            raise AssertionError


async def test_refusals_of_initialize_are_raised(scripted):
    """An error in place of the handshake is the server's own."""
    with pytest.raises(McpError, match="go away"), single_failure():
        async with scripted({"initialize": Exception(-32603, "go away")}, version="2025-06-18"):
            raise AssertionError


# What a result of `server/discover` lists

NO_LISTS = [{}, {"supportedVersions": None}, {"supportedVersions": "2026-07-28"}]
NO_LISTS += [{"supportedVersions": []}, {"supportedVersions": [5, None]}]
NO_LISTS += [{"resultType": "complete", "capabilities": {"tools": {}}}]


@pytest.mark.parametrize("answer", NO_LISTS)
async def test_a_result_that_lists_nothing_means_a_handshake(scripted, answer):
    """Some old servers answer whatever they do not know with an empty result."""
    async with scripted({"server/discover": answer}) as (client, script):
        assert client.protocol_version == "2025-11-25"
        assert client.capabilities.has("tools")
        await script.until("notifications/initialized")
    methods = [each["method"] for each in script.received]
    assert methods == ["server/discover", "initialize", "notifications/initialized"]


@pytest.mark.parametrize("answer", [*NO_LISTS, {"supportedVersions": ["2025-11-25"]}])
async def test_a_pinned_2026_07_28_has_to_be_listed(scripted, answer):
    """A client that was told to use it says that the server does not speak it."""
    with pytest.raises(ProtocolError, match="does not serve 2026-07-28"), single_failure():
        async with scripted({"server/discover": answer}, version="2026-07-28"):
            raise AssertionError


@pytest.mark.parametrize("version", [None, "2026-07-28"])
@pytest.mark.parametrize("versions", [["2099-01-01"], ["2024-11-05", "x"], ["2099-01-01", 5]])
async def test_a_server_that_lists_what_nobody_knows(scripted, versions, version):
    """There is nothing to talk about, and the error names what the server speaks."""
    text = f"no protocol version in common with the server, which speaks {versions[0]}"
    answers = {"server/discover": {**DISCOVERED, "supportedVersions": versions}}
    with pytest.raises(ProtocolError, match=text), single_failure():
        async with scripted(answers, version=version):
            raise AssertionError


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (["2026-07-28"], "2026-07-28"),
        (["2025-11-25", "2099-01-01", "2026-07-28"], "2026-07-28"),
        (["2024-11-05", "2025-03-26", "2025-06-18"], "2025-06-18"),
        (["2025-11-25"], "2025-11-25"),
        ([5, "2025-03-26"], "2025-03-26"),
    ],
)
async def test_the_best_revision_of_the_list_is_used(scripted, versions, expected):
    """2026-07-28 before all others; a handshake with the newest of the rest."""
    answers = {
        "server/discover": {**DISCOVERED, "supportedVersions": versions},
        "initialize": lambda request: {
            **INITIALIZED,
            "protocolVersion": request["params"]["protocolVersion"],
        },
    }
    async with scripted(answers) as (client, _):
        assert client.protocol_version == expected


UNSUPPORTED = Exception(-32022, "no", {"supported": VERSIONS, "requested": "2026-07-28"})


@pytest.mark.parametrize("version", [None, "2026-07-28"])
async def test_a_refusal_that_names_our_revision_is_tried_again(scripted, version):
    """Once: a server behind the same address may be newer than the one that refused."""
    async with scripted({"server/discover": [UNSUPPORTED, DISCOVERED]}, version=version) as (
        client,
        script,
    ):
        assert client.protocol_version == "2026-07-28"
    ids = [each["id"] for each in script.received]
    assert len(set(ids)) == len(ids) == 2


async def test_a_revision_that_is_refused_twice_is_given_up(scripted):
    """Then the next best that the error names is used, or there is none."""
    async with scripted({"server/discover": UNSUPPORTED}) as (client, script):
        assert client.protocol_version == "2025-11-25"
    methods = [each["method"] for each in script.received[:3]]
    assert methods == ["server/discover", "server/discover", "initialize"]
    with pytest.raises(ProtocolError, match="does not serve 2026-07-28: no"), single_failure():
        async with scripted({"server/discover": UNSUPPORTED}, version="2026-07-28"):
            raise AssertionError


@pytest.mark.parametrize("code", [-32022, -32602])
@pytest.mark.parametrize("named", ["2026-07-28", "2025-06-18"])
async def test_a_refusal_of_initialize_that_names_another_revision(scripted, code, named):
    """It is tried, once, whichever era it is of."""
    refused = Exception(code, "Unsupported protocol version", {"supported": ["x", named]})
    answers = {
        "server/discover": [Exception(-32601, "not yet"), DISCOVERED],
        "initialize": [refused, {**INITIALIZED, "protocolVersion": named}],
    }
    async with scripted(answers) as (client, _):
        assert client.protocol_version == named


@pytest.mark.parametrize(
    ("version", "data"),
    [
        ("2025-11-25", {"supported": ["2025-06-18"]}),  # pinned
        (None, {"supported": ["2025-11-25"]}),  # what was refused just now
        (None, {"supported": ["x"]}),
        (None, {"supported": 5}),
        (None, None),
    ],
)
async def test_a_refusal_of_initialize_that_helps_nobody(scripted, version, data):
    """The error of the server is raised, and nothing is asked twice."""
    refused = Exception(-32602, "Unsupported protocol version", data)
    answers = {"server/discover": Exception(-32601, "no"), "initialize": [refused]}
    with pytest.raises(McpError, match="Unsupported protocol version"), single_failure():
        async with scripted(answers, version=version):
            raise AssertionError

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
    """`server/discover` alone is sufficient."""
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
    """Old servers answer an unknown method in various ways."""
    async with scripted({"server/discover": answer}) as (client, script):
        assert client.protocol_version == "2025-11-25"
        assert client.server_info.name == "scripted"
        await script.until("notifications/initialized")


async def test_silence_means_a_handshake(scripted, autojump_clock):
    """A server that never answers the probe is old; a late answer changes nothing."""
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
    """A request timeout shorter than that of the probe also leads to a handshake."""
    start = trio.current_time()
    async with scripted({"server/discover": None}, probe_timeout=9, timeout=2) as (client, _):
        assert trio.current_time() - start == pytest.approx(2)
        assert client.protocol_version == "2025-11-25"


async def test_a_version_in_common_is_chosen_from_the_error(scripted):
    """`-32022` lists the versions of the server: the handshake uses the best of them."""
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
    """Without a common version the connection fails."""
    with pytest.raises(ProtocolError, match="no protocol version in common"), single_failure():
        async with scripted({"server/discover": Exception(-32022, "no", data)}):
            raise AssertionError


async def test_a_pinned_version_is_the_only_one(scripted):
    """With `version=` there is neither a probe nor a fallback."""
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


async def test_an_unrequested_version(scripted):
    """An unknown version in the answer to `initialize` ends the connection."""
    answers = {
        "server/discover": Exception(-32601, "no"),
        "initialize": {"protocolVersion": "1999-01-01"},
    }
    text = "wants protocol version '1999-01-01'"
    with pytest.raises(ProtocolError, match=text), single_failure():
        async with scripted(answers):
            raise AssertionError


async def test_a_server_that_never_answers(autojump_clock):
    """The client's timeout applies to the handshake; `initialize` is not cancelled."""
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
    """The name is optional (2026-07-28 `basic/index`)."""
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
    """An answer that violates the specification is a `ProtocolError`."""
    answer = {"supportedVersions": VERSIONS, **answer}
    with pytest.raises(ProtocolError), single_failure():
        async with scripted({"server/discover": answer}):
            raise AssertionError


async def test_refusals_of_initialize_are_raised(scripted):
    """An error as the answer to `initialize` is raised unchanged."""
    with pytest.raises(McpError, match="go away"), single_failure():
        async with scripted({"initialize": Exception(-32603, "go away")}, version="2025-06-18"):
            raise AssertionError


# The versions in a result of `server/discover`

NO_LISTS = [{}, {"supportedVersions": None}, {"supportedVersions": "2026-07-28"}]
NO_LISTS += [{"supportedVersions": []}, {"supportedVersions": [5, None]}]
NO_LISTS += [{"resultType": "complete", "capabilities": {"tools": {}}}]


@pytest.mark.parametrize("answer", NO_LISTS)
async def test_a_result_that_lists_nothing_means_a_handshake(scripted, answer):
    """Some old servers answer unknown methods with an empty result."""
    async with scripted({"server/discover": answer}) as (client, script):
        assert client.protocol_version == "2025-11-25"
        assert client.capabilities.has("tools")
        await script.until("notifications/initialized")
    methods = [each["method"] for each in script.received]
    assert methods == ["server/discover", "initialize", "notifications/initialized"]


@pytest.mark.parametrize("answer", [*NO_LISTS, {"supportedVersions": ["2025-11-25"]}])
async def test_a_pinned_2026_07_28_has_to_be_listed(scripted, answer):
    """A pinned version that the server does not list is an error."""
    with pytest.raises(ProtocolError, match="does not serve 2026-07-28"), single_failure():
        async with scripted({"server/discover": answer}, version="2026-07-28"):
            raise AssertionError


@pytest.mark.parametrize("version", [None, "2026-07-28"])
@pytest.mark.parametrize("versions", [["2099-01-01"], ["2024-11-05", "x"], ["2099-01-01", 5]])
async def test_a_server_that_lists_unknown_versions(scripted, versions, version):
    """Without a known version the error lists the server's versions."""
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
    """2026-07-28 comes first; otherwise the handshake uses the newest of the list."""
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
    """It is tried again once: another server at the same address may be newer."""
    async with scripted({"server/discover": [UNSUPPORTED, DISCOVERED]}, version=version) as (
        client,
        script,
    ):
        assert client.protocol_version == "2026-07-28"
    ids = [each["id"] for each in script.received]
    assert len(set(ids)) == len(ids) == 2


async def test_a_revision_that_is_refused_twice_is_given_up(scripted):
    """After a second refusal the next best version of the error is used, or the attempt fails."""
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
    """It is tried once, whichever era it belongs to."""
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
        (None, {"supported": ["2025-11-25"]}),  # the version that was just refused
        (None, {"supported": ["x"]}),
        (None, {"supported": 5}),
        (None, None),
    ],
)
async def test_a_refusal_of_initialize_without_versions(scripted, version, data):
    """The server's error is raised, and no request is repeated."""
    refused = Exception(-32602, "Unsupported protocol version", data)
    answers = {"server/discover": Exception(-32601, "no"), "initialize": [refused]}
    with pytest.raises(McpError, match="Unsupported protocol version"), single_failure():
        async with scripted(answers, version=version):
            raise AssertionError

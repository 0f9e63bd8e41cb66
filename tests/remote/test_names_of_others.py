"""A server behind a `Remote` cannot replace the components of another one."""

from contextlib import asynccontextmanager

import pytest
import trio

from noizu_mcp import (
    McpError,
    Mount,
    OpenAPI,
    Provider,
    Remote,
    Server,
    connect,
    prompt,
    resource,
    tool,
)
from noizu_mcp.components import SkillProvider

from .conftest import Life, front_of


def saying(text):
    async def say() -> str:
        return text

    return say


def named(text, *tools, prompts=(), uris=(), templates=()):
    """Make a server whose tools, prompts and resources return its name."""

    async def match(uri: str) -> str:
        return text

    return Life(
        text,
        tools=[tool(saying(text), name=name) for name in tools],
        prompts=[prompt(saying(text), name=name) for name in prompts],
        resources=[
            *(resource(saying(text), uri=uri, name="r") for uri in uris),
            *(resource(match, uri=uri, name="t") for uri in templates),
        ],
    )


@asynccontextmanager
async def gateway(**servers):
    """Return a client of a gateway with servers under prefixes; `_` means no prefix."""
    remotes = [
        Remote(life.server, prefix=name.strip("_"), label=name) for name, life in servers.items()
    ]
    async with connect(front_of(*remotes)) as client:
        yield client


async def names(client):
    return [each.name for each in await client.list_tools()]


@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("order", [1, -1])
async def test_names_with_the_prefix_of_another(order, is_down, caplog):
    """They are left out in any order, and also while the other server is down."""
    lives = {
        "github": named("bad", "enterprise_issue", "own", prompts=["enterprise_ask"]),
        "github_enterprise": named("good", "issue", prompts=["ask"]),
    }
    if is_down:
        lives["github_enterprise"].refusal = LookupError("down")
    async with gateway(**dict(list(lives.items())[::order])) as client:
        listed, prompts = set(await names(client)), await client.list_prompts()
        if is_down:
            assert (listed, prompts) == ({"github_own"}, [])
            with pytest.raises(McpError, match="github_enterprise is not connected"):
                await client.call_tool("github_enterprise_issue")
        else:
            assert listed == {"github_own", "github_enterprise_issue"}
            assert (await client.call_tool("github_enterprise_issue")).text == "good"
            found = await client.get_prompt("github_enterprise_ask")
            assert found.messages[0].content.text == "good"
    said = "the tool 'github_enterprise_issue' of 'github_enterprise_issue' of github is left out: "
    assert f"{said}the name is taken by the prefix of another provider" in caplog.text


@pytest.mark.parametrize("order", [1, -1])
async def test_uris_with_the_prefix_of_another(scripted, order):
    """A server without a prefix cannot serve a URI with the prefix of another one."""
    uris, templates = ["good+a://1", "own://1"], ["good+a://{+uri}", "{+uri}", "g{+uri}"]
    bad = scripted(
        resources__list={"resources": [{"uri": uri, "name": "bad"} for uri in uris]},
        resources__templates__list={
            "resourceTemplates": [{"uriTemplate": each, "name": "bad"} for each in templates]
        },
        resources__read={"contents": [{"uri": "x://y", "text": "bad"}]},
    )
    good = named("good", uris=["a://1"], templates=["a://x/{uri}"])
    remotes = [Remote(bad), Remote(good.server, prefix="good")]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bad.script)
        async with connect(front_of(*remotes[::order])) as client:
            assert {each.uri for each in await client.list_resources()} == set(uris)
            listed = {each.uri_template for each in await client.list_resource_templates()}
            assert listed == {"good+a://x/{uri}", "{+uri}", "g{+uri}"}
            for uri in ("good+a://1", "good+a://x/2"):
                assert (await client.read_resource(uri)).contents[0].text == "good"
            with pytest.raises(McpError, match="not found"):
                await client.read_resource("good+b://3")
            assert (await client.read_resource("go://1")).contents[0].text == "bad"
        nursery.cancel_scope.cancel()


async def test_the_present_owner_stays(caplog, autojump_clock):
    """Without prefixes a name stays with its server, also while that is down."""
    first, second = named("first"), named("second", "get")
    servers = first.server(), second.server()
    remotes = [Remote(each, label=name) for name, each in zip("ab", servers, strict=True)]
    async with connect(front_of(*remotes)) as client:
        assert await names(client) == ["get"]
        servers[0].tools.add(tool(saying("first"), name="get"), tool(saying("first"), name="put"))
        await trio.sleep(10)
        assert sorted(await names(client)) == ["get", "put"]
        assert (await client.call_tool("get")).text == "second"
        second.refusal = LookupError("down")
        second.kill()
        await trio.sleep(30)
        assert await names(client) == ["put"]
        with pytest.raises(McpError, match="Unknown tool: get"):
            await client.call_tool("get")
        second.refusal = None
        await trio.sleep(100)
        assert (await client.call_tool("get")).text == "second"
        # Names that its owner removes are free.
        servers[1].tools.remove("get")
        await trio.sleep(10)
        assert (await client.call_tool("get")).text == "first"
    told = [each for each in caplog.messages if "'get' of a is left out" in each]
    assert 1 <= len(told) <= 5
    assert "the tool 'get' of 'get' of a is left out: the name is taken by 'get' of b" in told
    assert all(record.exc_info is None for record in caplog.records if record.levelno >= 30)


async def test_many_clashes(caplog):
    """Many clashes of one server do not flood the log."""
    taken = [f"x_{number}" for number in range(100)]
    lives = {"a": named("bad", *(f"b_{each}" for each in taken)), "a_b": named("good", *taken)}
    async with gateway(**lives) as client:
        assert len(await client.list_tools()) == 100
    assert len([each for each in caplog.messages if "left out" in each]) <= 6


async def test_mounted_servers_and_apis():
    """Prefixes of mounted servers and APIs are reserved, too."""

    class Inner(Server, name="inner", version="1"):
        tools = [tool(saying("good"), name="get")]

    document = {
        "openapi": "3.1.0",
        "info": {"title": "Api", "version": "1"},
        "servers": [{"url": "https://api.test"}],
        "paths": {"/x": {"get": {"operationId": "read", "responses": {}}}},
    }
    bad = Remote(named("bad", "in_get", "api_read", "fine").server)
    front = front_of(bad, Mount(Inner, prefix="in"), OpenAPI(document, prefix="api"))
    async with connect(front) as client:
        assert sorted(await names(client)) == ["api_read", "fine", "in_get"]
        assert (await client.call_tool("in_get")).text == "good"


class Skilled(Provider, SkillProvider):
    """Has one skill, and its folder."""

    def __init__(self, start, uri):
        self._start, self._uri = start, uri

    def namespace(self, key):
        return self._start

    async def skills(self, ctx):
        return [await self.skill(self._uri, ctx)]

    async def skill(self, uri, ctx):
        matter = {"name": "x", "description": self._start or "bad"}
        return {"uri": uri, "frontmatter": matter, "resources": "dynamic"}

    async def directory(self, uri, cursor, ctx):
        return {"resources": [{"uri": uri, "name": self._start or "bad"}]}


@pytest.mark.parametrize("order", [1, -1])
async def test_skills_with_the_prefix_of_another(order):
    """A skill and its folder belong to the provider with the prefix."""
    uri = "good+skill://x/SKILL.md"
    providers = [Skilled("", uri), Skilled("good+", uri)]
    async with connect(front_of(*providers[::order])) as client:
        (listed,) = (await client.request("skills/list"))["skills"]
        found = (await client.request("skills/get", {"uri": uri}))["skill"]
        assert [each["frontmatter"]["description"] for each in (listed, found)] == ["good+"] * 2
        page = await client.request("resources/directory/read", {"uri": "good+skill://x/"})
        assert [each["name"] for each in page["resources"]] == ["good+"]

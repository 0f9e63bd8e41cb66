"""Policies and capabilities of a server and of its mounted server both apply."""

import pytest

from noizu_mcp import (
    Context,
    McpError,
    Mount,
    Prompt,
    PromptMessage,
    Resource,
    ResourceTemplate,
    Schema,
    Server,
    Toolkit,
    argument,
    connect,
    mcp,
)
from noizu_mcp.policies import Denied, DenyTools, Policy
from noizu_mcp.types import Reference

from .passing_on import PassingOn

VERSIONS = ["2025-11-25", "2026-07-28"]


class Kit(Toolkit):
    @mcp
    async def charge(self, amount: int = 1) -> int:
        return amount

    @mcp(hidden=True)
    async def secret(self) -> str:
        return "secret"

    @mcp
    async def refund(self, ctx: Context) -> str:
        return (await ctx.call_tool("charge", {"amount": 2})).text

    @mcp
    async def escape(self, ctx: Context) -> str:
        return (await ctx.server.call_tool("charge", {}, ctx)).text

    @mcp
    async def narrow(self, ctx: Context, tool: str) -> str:
        capability = ctx.capability.attenuate(tools=["charge"]).attenuate(depth=1)
        assert "depth 1" in repr(capability)
        first = await ctx.call_tool(tool, capability=capability)
        second = await ctx.call_tool(tool, capability=str(capability))
        opened = await ctx.open_capability(str(capability))
        third = await ctx.call_tool(tool, capability=opened.attenuate(tools="charge"))
        assert opened.principal is None
        return f"{first.text}, {second.text}, {third.text}"


class Row(ResourceTemplate, uri_template="db://{number}"):
    async def read(self, uri, args, ctx):
        return args.number

    async def complete(self, variable, prefix, ctx):
        return ["1"]


class Page(Resource, uri="page://one"):
    async def read(self, uri, ctx):
        return "one"


class Greet(Prompt):
    class Arguments(Schema):
        name: str | None = argument(default=None, complete=["Ann"])

    async def get(self, args, ctx):
        return [PromptMessage.user("hi")]


class Billing(Server, name="billing", version="1"):
    tools = [Kit]
    resources = [Row, Page]
    prompts = [Greet]


class Caller(Toolkit):
    @mcp
    async def call(self, ctx: Context, tool: str) -> str:
        return (await ctx.call_tool(tool)).text

    @mcp
    async def confine(self, ctx: Context, tool: str, allowed: str) -> str:
        depth = 1 if tool == allowed else None
        capability = ctx.capability.attenuate(tools=[tool, allowed], depth=depth)
        return (await ctx.call_tool(tool, capability=capability)).text

    @mcp
    async def read(self, ctx: Context, uri: str) -> str:
        return (await ctx.read_resource(uri)).contents[0].text


class Refusing(Policy):
    def __init__(self):
        self.calls = []
        self.names = ()

    async def check(self, call, ctx):
        self.calls.append((call.kind, call.name, ctx.server.options.name))
        if call.name in self.names:
            raise Denied("not today")


class Passing(PassingOn, Billing, name="passing", version="1"):
    """Overrides everything, and passes everything on."""


def mounted(depth=1, cls=Billing):
    """Mount a server; return it, its parent and its policy."""
    inner, policy = cls(), Refusing()
    inner.policies.replace([policy])
    mount = Mount(inner, prefix="billing")
    if depth == 2:

        class Middle(Server, name="middle", version="1"):
            providers = [mount]

        mount = Mount(Middle)

    class Shop(Server, name="shop", version="1"):
        tools = [Caller]
        providers = [mount]

    return inner, Shop(), policy


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_policies_of_a_mounted_server_hold(version, depth):
    """Policies run on each way to the mounted handlers, with the names inside of their server."""
    _, shop, policy = mounted(depth)
    async with connect(shop, version=version) as client:
        assert (await client.call_tool("billing_charge")).text == "1"
        policy.names = ("charge", "db://7", "page://one", "greet", "db://{number}", "secret")
        assert (await client.call_tool("billing_charge")).text == "Denied: not today"
        assert (await client.call_tool("call", {"tool": "billing_charge"})).text == (
            "Denied: not today"
        )
        assert (await client.call_tool("read", {"uri": "billing+db://7"})).text == (
            "Denied: not today"
        )
        ref = Reference("ref/prompt", name="billing_greet")
        row = Reference("ref/resource", uri="billing+db://{number}")
        for ask in (
            client.read_resource("billing+page://one"),
            client.get_prompt("billing_greet"),
            client.complete(ref, "name", ""),
            client.complete(row, "number", ""),
        ):
            with pytest.raises(McpError, match="Denied: not today"):
                await ask
        with pytest.raises(McpError, match="Unknown tool: billing_secret"):
            await client.call_tool("billing_secret")
    assert {server for _, _, server in policy.calls} == {"billing"}
    assert [call[:2] for call in policy.calls] == [
        *[("tool", "charge")] * 3,
        *[("resource", "db://7"), ("resource", "page://one"), ("prompt", "greet")],
        *[("completion", "greet"), ("completion", "db://{number}"), ("tool", "secret")],
    ]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_override_of_a_mounted_server_is_asked_about_once(version, depth):
    """The policy is asked once for a call that is passed on, and again for a changed call."""
    _, shop, policy = mounted(depth, Passing)
    async with connect(shop, version=version) as client:
        await client.call_tool("billing_charge", {"amount": 3})
        await client.call_tool("call", {"tool": "billing_charge"})
        await client.read_resource("billing+page://one")
        await client.read_resource("billing+db://7")
        await client.get_prompt("billing_greet")
        await client.complete(Reference("ref/prompt", name="billing_greet"), "name", "")
        row = Reference("ref/resource", uri="billing+db://{number}")
        await client.complete(row, "number", "")
        assert [name for _, name, _ in policy.calls] == [
            *("charge", "charge", "page://one", "db://7", "greet", "greet", "db://{number}")
        ]
        policy.calls.clear()
        assert (await client.call_tool("billing_escape")).text == "1"
        assert [name for _, name, _ in policy.calls] == ["escape", "charge"]
        policy.names = ("charge",)
        assert (await client.call_tool("billing_charge")).text == "Denied: not today"


@pytest.mark.parametrize("cls", [Billing, Passing])
async def test_a_capability_counts_a_mounted_override_once(cls):
    """A capability for a single tool, without nested calls, is enough to call it."""
    inner, shop, _ = mounted(cls=cls)
    inner.policies.replace([])
    async with connect(shop) as client:
        confined = {"tool": "billing_charge", "allowed": "billing_charge"}
        assert (await client.call_tool("confine", confined)).text == "1"


async def test_policies_that_cannot_wait_hold():
    """Synchronous policies are asked like asynchronous ones."""
    inner, shop, _ = mounted()
    inner.policies.replace([DenyTools("refund")])
    async with connect(shop) as client:
        assert (await client.call_tool("billing_charge")).text == "1"
        text = (await client.call_tool("billing_refund")).text
        assert "'refund' is blocked by the pattern 'refund'" in text


async def test_the_policies_of_both_servers_hold():
    """The parent's policies come first, with its names."""
    inner, shop, policy = mounted()
    shop.policies.replace([DenyTools("billing_charge")])
    async with connect(shop) as client:
        assert (
            "blocked by the pattern 'billing_charge'"
            in (await client.call_tool("billing_charge")).text
        )
        assert policy.calls == []
        # Also for a call from the mounted server.
        assert "blocked by the pattern" in (await client.call_tool("billing_refund")).text
        shop.policies.replace([])
        assert (await client.call_tool("billing_refund")).text == "2"
        inner.policies.replace([])
        policy.calls.clear()
        assert (await client.call_tool("billing_charge")).text == "1"
        assert policy.calls == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_capabilities_hold_across_servers(version):
    """A handler of the mounted server writes its own names into a capability."""
    _, shop, _ = mounted()
    async with connect(shop, version=version) as client:
        assert (await client.call_tool("billing_narrow", {"tool": "charge"})).text == "1, 1, 1"
        text = (await client.call_tool("billing_narrow", {"tool": "refund"})).text
        assert text.count("does not allow tool 'billing_refund'") == 3
        for tool in ("billing_refund", "billing_escape"):
            confined = {"tool": tool, "allowed": "charge"}
            assert (await client.call_tool("confine", confined)).text == (
                "Denied: the capability does not allow tool 'billing_charge'"
            )
            allowed = {"tool": tool, "allowed": "billing_charge"}
            assert (await client.call_tool("confine", allowed)).text in ("1", "2")

"""The three interfaces of a client: for trio, for asyncio, and for blocking code."""

import asyncio
import inspect
import re
import typing

import pytest

from noizu_mcp import (
    Client,
    Clients,
    Server,
    SyncClient,
    SyncClients,
    Toolkit,
    aio,
    connect,
    connect_all,
    mcp,
)
from noizu_mcp.client import LiveList, SyncLiveList

#: The class for trio and the class for blocking code.
PAIRS = [(Client, SyncClient), (Clients, SyncClients), (LiveList, SyncLiveList)]
#: Members with another name in the class for blocking code.
RENAMED = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__"}
#: Members that open and close the object; objects for trio are context managers.
OWN = {"open", "close", "__enter__", "__exit__"}


class Kit(Toolkit):
    """A tool."""

    @mcp
    async def add(self, a: int, b: int) -> int:
        return a + b


class Adder(Server, name="adder", version="1"):
    tools = [Kit]


def attributes(cls):
    """List the attributes that the docstring of a class documents."""
    _, _, section = (inspect.getdoc(cls) or "").partition("Attributes:\n")
    return set(re.findall(r"^    (\w+):", section.partition("\n\n")[0], re.MULTILINE))


def members(cls):
    """Return the public members of a class, and the special methods that it defines."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("noizu_mcp"):
            found |= vars(base)
    special = {"__aenter__", "__aexit__", "__enter__", "__exit__", "__getitem__", "__iter__"}
    special |= {"__len__", "__contains__"}
    return {name: each for name, each in found.items() if name[0] != "_" or name in special}


@pytest.mark.parametrize(("trio_class", "plain_class"), PAIRS)
def test_plain_code_has_every_member(trio_class, plain_class):
    """The classes for blocking code have the same members as those for trio."""
    wanted = {RENAMED.get(name, name) for name in members(trio_class)} | attributes(trio_class)

    assert wanted - members(plain_class).keys() == set()
    assert members(plain_class).keys() - wanted - OWN == set()


@pytest.mark.parametrize(("trio_class", "plain_class"), PAIRS)
def test_plain_code_has_the_same_signatures(trio_class, plain_class):
    """A method has the same parameters and the same result, and blocks."""
    for name, theirs in members(trio_class).items():
        ours = members(plain_class)[RENAMED.get(name, name)]
        if isinstance(theirs, property):
            assert isinstance(ours, property), name
            continue
        assert not inspect.iscoroutinefunction(ours), name
        if name in RENAMED or name == "__getitem__":
            continue
        assert inspect.signature(ours) == inspect.signature(theirs), name
        overloads = [inspect.signature(each) for each in typing.get_overloads(theirs)]
        wrapped = inspect.unwrap(ours)
        assert [inspect.signature(each) for each in typing.get_overloads(wrapped)] == overloads
        assert name[0] == "_" or inspect.getdoc(ours), name


def test_the_options_equal_those_on_trio():
    """Each way to connect has the parameters of `connect` or `connect_all`."""
    one, several = inspect.signature(connect), inspect.signature(connect_all)

    assert inspect.signature(aio.connect) == one
    assert inspect.signature(aio.connect_all) == several
    assert inspect.signature(SyncClient).parameters == one.parameters
    assert inspect.signature(SyncClients).parameters == several.parameters


def crossed(shown, base):
    """Check that no member of an object for asyncio uses trio in a task of asyncio."""
    assert isinstance(shown, base)
    for name, theirs in members(base).items():
        ours = inspect.getattr_static(type(shown), name)
        if inspect.iscoroutinefunction(inspect.unwrap(theirs)) and name[0] != "_":
            assert ours is not theirs, name
            assert inspect.iscoroutinefunction(ours), name
            assert inspect.signature(ours) == inspect.signature(theirs), name
        elif not isinstance(theirs, property) and name in vars(base) and name[0] != "_":
            assert inspect.isasyncgenfunction(inspect.unwrap(theirs)), name
            assert ours is not theirs, name
            assert inspect.signature(ours) == inspect.signature(theirs), name


def test_asyncio_has_every_member():
    """Methods run on the trio side; no property returns an object that belongs to trio."""

    async def main():
        own = {"a": {"timeout": 7}}
        async with (
            aio.connect(Adder) as client,
            aio.connect_all({"a": Adder}, per_server=own) as clients,
        ):
            assert clients["a"].timeout == 7
            crossed(client, Client)
            crossed(clients, Clients)
            crossed(clients["a"], Client)
            for name, member in members(Client).items():
                if isinstance(member, property):
                    value = getattr(client, name)
                    assert type(value) not in (Client, Clients, LiveList), name
                    if isinstance(value, LiveList):
                        crossed(value, LiveList)
            async with client.tools as tools:
                crossed(tools, LiveList)
                assert [tool.name for tool in tools] == ["add"]
                await tools.refresh()
            client.timeout = 5
            assert client.timeout == 5
            assert (await clients["a"].call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"
            await clients["a"].aclose()

    asyncio.run(main())


def test_plain_code_shares_the_attributes():
    """Setting an attribute sets it on the trio client."""
    with SyncClient(Adder) as client, SyncClients({"a": Adder}) as clients:
        client.timeout = 5
        assert client.timeout == 5
        with client.tools as tools:
            assert [tool.name for tool in tools] == ["add"]
        one = clients["a"]
        assert one.call_tool("add", {"a": 1, "b": 2}).content[0].text == "3"

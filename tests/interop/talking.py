"""Shared by the tests in which our client drives foreign servers.

All scenarios run once on one connection; each is a method that returns what it saw.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import trio

from noizu_mcp import Accept, Client, ClientHandler, Root, SamplingResult, Stdio, connect

#: Seconds for one scenario, and for one connection.
PATIENCE, CONNECTED = 60, 120


class Ears(ClientHandler):
    """Keeps every notification that comes."""

    def __init__(self) -> None:
        self.send, self.heard = trio.open_memory_channel[tuple[str, Mapping[str, Any]]](100)

    async def handle_notification(self, method: str, params: Mapping[str, Any]) -> None:
        self.send.send_nowait((method, params))

    async def next(self, method: str) -> Mapping[str, Any]:
        """Wait for the next notification of a method."""
        async for heard, params in self.heard:
            if heard == method:
                return params
        raise AssertionError("the channel is never closed")


class Person(Ears):
    """Answers everything, and keeps what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Mapping[str, Any]] = []

    def accept(self, params: Mapping[str, Any]) -> Accept[Any]:
        """Accept the defaults of a form; each other field is a name."""
        if params.get("mode") == "url":
            return Accept(None)
        fields = params["requestedSchema"]["properties"]
        return Accept({name: field.get("default", "Ada") for name, field in fields.items()})

    async def handle_elicitation(self, params: Mapping[str, Any]) -> Any:
        self.asked.append(params)
        return self.accept(params)

    async def handle_sampling(self, params: Mapping[str, Any]) -> SamplingResult:
        self.asked.append(params)
        return SamplingResult(role="assistant", content="thought", model="tiny")

    async def list_roots(self) -> list[Root]:
        return [Root("file:///work")]


async def attempt(scenario: Callable[[], Awaitable[Any]]) -> Any:
    """Run a scenario; return its value, or the exception that ended it."""
    try:
        with trio.fail_after(PATIENCE):
            return await scenario()
    except Exception as error:
        return error


async def converse(
    command: Stdio | str,
    version: str | None,
    handler: ClientHandler,
    conversation: Callable[[Client, Any], object],
    names: Iterable[str],
) -> dict[str, Any]:
    """Run the named scenarios of a conversation on one connection; return the value of each."""
    with trio.fail_after(CONNECTED):
        # A busy machine may take longer to start a server than a client waits for its first answer.
        options = {"version": version, "probe_timeout": CONNECTED}
        async with connect(command, handler=handler, **options) as client:
            scenarios = conversation(client, handler)
            return {name: await attempt(getattr(scenarios, name)) for name in names}


def look_up(found: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return a function that looks a scenario up; an exception of it is raised there."""

    def look(name: str) -> Any:
        value = found[name]
        if isinstance(value, Exception):
            raise value
        return value

    return look


def texts(result: Any) -> list[str]:
    """Return the text of a result that has only text and no error."""
    assert not result.is_error, result
    return [block.text for block in result.content]

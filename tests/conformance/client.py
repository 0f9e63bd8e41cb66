"""Client that the official conformance suite drives: each start plays one scenario.

The suite passes the URL of its server as the last argument, and the scenario, the revision and a
context in the environment. The last line on stdout is the end of the scenario: `done`, or the
exception that the client raised.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio

from noizu_mcp import Accept, Client, ClientHandler, Root, SamplingResult, connect

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
#: The older line of the suite names no revision: the client negotiates, as it does for its users.
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
#: A value for an argument or a field without a default, by its type.
SAMPLES = {
    "string": "text",
    "number": 1.5,
    "integer": 1,
    "boolean": True,
    "object": {},
    "array": [],
}


def sample(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in a form: the default of a field, or any value of its type."""
    fields = schema.get("properties", {})
    return {
        name: field.get("default", SAMPLES[field["type"]])
        for name, field in fields.items()
        if "default" in field or name in schema.get("required", fields)
    }


class Answers(ClientHandler):
    """Answers every question."""

    async def handle_elicitation(self, params):
        return Accept(sample(params["requestedSchema"]))

    async def handle_sampling(self, params):
        return SamplingResult(role="assistant", content="text", model="a-model")

    async def list_roots(self):
        return [Root("file:///work")]


async def call_tools(client: Client) -> None:
    """List the tools and call each one."""
    for tool in await client.list_tools():
        await client.call_tool(tool.name, sample(tool.input_schema))


async def add_numbers(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def list_tools(client: Client) -> None:
    await client.list_tools()


async def echo_schema(client: Client) -> None:
    """Send the schema of a tool back as it came."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    schema = tools["json_schema_2020_12_tool"].input_schema
    await client.call_tool("json_schema_echo", {"schema": schema})


async def call_in_order(client: Client) -> None:
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}")


async def use_everything(client: Client) -> None:
    """Use each tool, resource and prompt of the server."""
    await call_tools(client)
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


async def call_as_told(client: Client) -> None:
    await client.list_tools()
    for call in CONTEXT["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


#: Scenarios of another course than `call_tools`.
COURSES: dict[str, Callable[[Client], Awaitable[None]]] = {
    "initialize": list_tools,
    "tools_call": add_numbers,
    "json-schema-2020-12-preservation": echo_schema,
    "json-schema-ref-no-deref": list_tools,
    "sep-2322-client-request-state": call_in_order,
    "http-standard-headers": use_everything,
    "http-custom-headers": call_as_told,
}


async def play(url: str) -> None:
    """Play the scenario with the server at a URL."""
    async with connect(url, handler=Answers(), version=VERSION) as client:
        await COURSES.get(SCENARIO, call_tools)(client)


def main() -> int:
    """Play the scenario and print its end."""
    try:
        trio.run(play, sys.argv[-1])
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    print("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())

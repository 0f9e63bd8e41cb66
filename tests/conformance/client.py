"""Client for the official conformance suite: each process plays one scenario.

The suite passes the URL of its server as the last argument, and the scenario, the revision and a
context in the environment. The last line on stdout is the end of the scenario: `done`, or the
exception that the client raised.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import trio

from noizu_mcp import Accept, Client, ClientHandler, Root, SamplingResult, connect

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
#: The older line of the suite names no revision: the client negotiates, as usual.
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
#: The URL of the metadata of this client, for servers that support such client ids.
METADATA = "https://conformance-test.local/client-metadata.json"
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
    """Return a value for a field: its default, or any value of its type."""
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
    """Send the schema of a tool back unchanged."""
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


async def list_skills(client: Client) -> None:
    """List the skills, without reading files."""
    (_,) = await client.list_skills()


async def load_skill(client: Client) -> None:
    """Read a skill, and then a file that it mentions."""
    (skill,) = await client.list_skills()
    await client.read_skill(skill)
    await client.read_skill(skill, "references/FORMS.md")


#: Scenarios with their own steps instead of `call_tools`.
COURSES: dict[str, Callable[[Client], Awaitable[None]]] = {
    "initialize": list_tools,
    "tools_call": add_numbers,
    "json-schema-2020-12-preservation": echo_schema,
    "json-schema-ref-no-deref": list_tools,
    "sep-2322-client-request-state": call_in_order,
    "http-standard-headers": use_everything,
    "http-custom-headers": call_as_told,
    "sep-2640-client-no-prefetch": list_skills,
    "sep-2640-client-verify-digest": load_skill,
    "sep-2640-client-verify-frontmatter": load_skill,
    "sep-2640-client-verify-size": load_skill,
}


async def follow(url: str) -> str:
    """Replace the browser of a user who approves: return the redirect."""
    import httpx2

    # The servers of the suite use plain HTTP: no certificates are loaded.
    async with httpx2.AsyncClient(verify=False, timeout=60) as browser:
        return (await browser.get(url)).headers["location"]


async def issuer_at(url: str) -> str:
    """Return the issuer of the secrets of a scenario, which the suite does not name."""
    import httpx2

    parts = urlsplit(url)
    async with httpx2.AsyncClient(verify=False, timeout=60) as http:
        for path in (parts.path, ""):
            known = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{path}"
            answer = await http.get(known)
            if answer.status_code == 200:
                return answer.json()["authorization_servers"][0]
    return f"{parts.scheme}://{parts.netloc}"


async def strategy(url: str) -> Any:
    """Make the credentials for the scenario; return None for scenarios without any."""
    if not SCENARIO.startswith("auth/"):
        return None
    from noizu_mcp import auth

    known = {name: CONTEXT.get(name) for name in ("client_id", "client_secret", "issuer")}
    if known["issuer"] is None and {"client_secret", "valid_jwt"} & CONTEXT.keys():
        known["issuer"] = await issuer_at(url)
    match SCENARIO.removeprefix("auth/"):
        case "client-credentials-basic":
            return auth.ClientCredentials(**known)
        case "client-credentials-jwt":
            key, algorithm = CONTEXT["private_key_pem"], CONTEXT["signing_algorithm"]
            return auth.PrivateKeyJWT(CONTEXT["client_id"], key, algorithm=algorithm)
        case "wif-jwt-bearer":
            return auth.WorkloadIdentity(CONTEXT["valid_jwt"], **known)
        case "enterprise-managed-authorization" | "cross-app-access-complete-flow":
            return auth.EnterpriseManaged(
                **known,
                idp=CONTEXT["idp_issuer"],
                idp_client_id=CONTEXT["idp_client_id"],
                id_token=CONTEXT["idp_id_token"],
            )
        case name:
            return auth.OAuth(
                **known,
                client_metadata_url=METADATA,
                open_browser=follow,
                dpop=name.startswith("dpop"),
            )


async def play(url: str) -> None:
    """Play the scenario with the server at a URL."""
    async with connect(url, handler=Answers(), version=VERSION, auth=await strategy(url)) as client:
        await COURSES.get(SCENARIO, call_tools)(client)


def main() -> int:
    """Play the scenario and print its result."""
    try:
        trio.run(play, sys.argv[-1])
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    print("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())

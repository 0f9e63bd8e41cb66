"""Drive a server with the official Python client and print its report as one JSON object.

The argument is a JSON array of connections, each with `label`, `kind`, `version`, `command`,
`journal`, `scenarios` and perhaps more, as in the fixture `drive`. The report has one object for
each label, with one value for each scenario.
"""

import contextlib
import json
import sys
import traceback
from functools import partial
from typing import Any, Self

import mcp.client.session as session_module
import mcp_types as types
import trio
from mcp import Client, MCPError, StdioServerParameters
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.subscriptions import event_to_notification

#: Seconds for one scenario.
PATIENCE = 60
#: The accepted notifications of a listen request.
METHODS = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
    "resourceSubscriptions": "notifications/resources/updated",
}


def target(connection: dict[str, Any]) -> Any:
    """Return the place of the server: a URL, or a command."""
    if "url" in connection:
        return connection["url"]
    command, *args = connection["command"]
    env = {"INTEROP_JOURNAL": connection["journal"]}
    return StdioServerParameters(command=command, args=args, env=env)


class Driver:
    """One connection."""

    def __init__(self, connection: dict[str, Any], nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.logs: list[dict[str, Any]] = []
        self.changed_send, self.changed = trio.open_memory_channel[None](100)
        self.notices_send, self.heard = trio.open_memory_channel[Any](1000)
        self.person = Person()
        version = connection["version"]
        if connection["kind"] == "handshake":
            # The client has no option for it: it always offers its latest revision.
            session_module.LATEST_HANDSHAKE_VERSION = version
        kinds = {"handshake": "legacy", "auto": "auto", "pin": version}
        self.client = Client(
            target(connection),
            mode=kinds[connection["kind"]],
            logging_callback=self.on_log,
            message_handler=self.on_message,
            log_level=connection.get("level", "warning"),
            cache=None,
            **(self.person.callbacks() if connection.get("answers", True) else {}),
        )

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.client.__aexit__(*exc_info)

    async def on_log(self, params: Any) -> None:
        self.logs.append(params.model_dump(by_alias=True, mode="json", exclude_none=True))

    async def on_message(self, message: Any) -> None:
        method = getattr(message, "method", "")
        if method == "notifications/tools/list_changed":
            self.changed_send.send_nowait(None)
        if method.endswith(("/list_changed", "/updated")):
            self.notices_send.send_nowait(notice(message))

    @property
    def modern(self) -> bool:
        return self.client.protocol_version >= "2026-07-28"

    async def handshake(self, scenario: dict[str, Any]) -> Any:
        info = self.client.server_info
        return {
            "version": self.client.protocol_version,
            "server": None if info is None else wire(info),
            "capabilities": wire(self.client.server_capabilities),
            "instructions": self.client.instructions,
        }

    async def alive(self, scenario: dict[str, Any]) -> Any:
        if self.modern:
            return await self.client.session.send_discover(self.client.protocol_version)
        return wire(await self.client.send_ping())

    async def list(self, scenario: dict[str, Any]) -> Any:
        tools: list[Any] = []
        cursor, pages = None, 0
        while True:
            page = await self.client.list_tools(cursor=cursor)
            tools += [wire(each) for each in page.tools]
            cursor, pages = page.next_cursor, pages + 1
            if cursor is None:
                return {"tools": tools, "pages": pages}

    async def call(self, scenario: dict[str, Any]) -> Any:
        arguments = scenario.get("arguments", {})
        return wire(await self.client.call_tool(scenario["tool"], arguments))

    async def progress(self, scenario: dict[str, Any]) -> Any:
        seen: list[Any] = []
        arguments = scenario.get("arguments", {})

        async def report(progress: float, total: float | None, message: str | None) -> None:
            seen.append([progress, total, message])
            if "then" in scenario and len(seen) == arguments["count"]:
                await self.client.call_tool(scenario["then"], {})

        result = await self.client.call_tool(scenario["tool"], arguments, progress_callback=report)
        return {"result": wire(result), "seen": seen}

    async def logging(self, scenario: dict[str, Any]) -> Any:
        if not self.modern:
            await self.client.set_logging_level(scenario.get("level", "warning"))
        before = len(self.logs)
        result = await self.call(scenario)
        return {"result": result, "seen": self.logs[before:]}

    async def cancel(self, scenario: dict[str, Any]) -> Any:
        running = trio.CancelScope()

        async def stop(*progress: Any) -> None:
            running.cancel()

        with running:
            await self.client.call_tool(scenario["tool"], {}, progress_callback=stop)
        after = await self.client.call_tool(scenario["after"], {})
        return {"cancelled": running.cancelled_caught, "after": wire(after)}

    async def abandon(self, scenario: dict[str, Any]) -> Any:
        running = trio.Event()

        async def report(*progress: Any) -> None:
            running.set()

        async def call() -> None:
            with contextlib.suppress(MCPError):  # it reports that the connection was closed
                await self.client.call_tool(scenario["tool"], {}, progress_callback=report)

        self.nursery.start_soon(call)
        await running.wait()
        return True

    async def concurrent(self, scenario: dict[str, Any]) -> Any:
        count = scenario["count"]
        answers: list[Any] = [None] * count

        async def one(number: int) -> None:
            arguments = {"number": number, "of": count}
            answers[number] = wire(await self.client.call_tool(scenario["tool"], arguments))

        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(one, number)
        return answers

    async def unknown_method(self, scenario: dict[str, Any]) -> Any:
        session = self.client.session
        data: dict[str, Any] = {"method": "no/such", "params": {}}
        options: dict[str, Any] = {}
        session._stamp(data, options)
        return await session._dispatcher.send_raw_request(data["method"], data["params"], options)

    async def changes(self, scenario: dict[str, Any]) -> Any:
        if not self.modern:
            return await self._change(scenario, self.changed.receive)
        async with self.client.listen(tools_list_changed=True) as subscription:
            return await self._change(scenario, subscription.__anext__)

    async def resources(self, scenario: dict[str, Any]) -> Any:
        resources = await self.client.list_resources()
        templates = await self.client.list_resource_templates()
        return {
            "resources": [wire(each) for each in resources.resources],
            "templates": [wire(each) for each in templates.resource_templates],
        }

    async def read(self, scenario: dict[str, Any]) -> Any:
        return wire(await self.client.read_resource(scenario["uri"]))

    async def prompts(self, scenario: dict[str, Any]) -> Any:
        return [wire(each) for each in (await self.client.list_prompts()).prompts]

    async def prompt(self, scenario: dict[str, Any]) -> Any:
        return wire(await self.client.get_prompt(scenario["prompt"], scenario.get("arguments")))

    async def complete(self, scenario: dict[str, Any]) -> Any:
        kinds = {
            "ref/prompt": types.PromptReference,
            "ref/resource": types.ResourceTemplateReference,
        }
        reference = kinds[scenario["ref"]["type"]].model_validate(scenario["ref"])
        found = await self.client.complete(
            reference, scenario["argument"], context_arguments=scenario.get("context")
        )
        return wire(found)["completion"]

    async def ask(self, scenario: dict[str, Any]) -> Any:
        self.person.mood, self.person.asked = scenario["mood"], []
        what = scenario["what"]
        result = await getattr(self, what["kind"])(what)
        return {"result": result, "asked": list(self.person.asked)}

    async def give_up(self, scenario: dict[str, Any]) -> Any:
        self.person.mood, self.person.asked = "never", []
        with trio.CancelScope() as waiting:

            async def leave() -> None:
                await self.person.called.wait()
                waiting.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(leave)
                await self.call(scenario)
        await self.person.dismissed.wait()
        return await self.call({"tool": scenario["after"]})

    async def tamper(self, scenario: dict[str, Any]) -> Any:
        session, tool = self.client.session, scenario["tool"]
        first = await session.call_tool(tool, {}, allow_input_required=True)
        answers = {key: await self._answer(each) for key, each in first.input_requests.items()}
        return wire(
            await session.call_tool(
                tool, {}, input_responses=answers, request_state=first.request_state + "x"
            )
        )

    async def _answer(self, request: Any) -> Any:
        self.person.mood = "accept"
        return await self.person.elicit(None, request.params)

    async def notices(self, scenario: dict[str, Any]) -> Any:
        listen = scenario["listen"]
        if self.modern:
            async with self.client.listen(**{snake(key): listen[key] for key in listen}) as stream:
                await self.call(scenario)
                event = event_to_notification(await anext(stream), {})
                return {"agreed": wire(stream.honored), "notice": notice(event)}
        watched = listen.get("resourceSubscriptions", [])
        for uri in watched:
            await self.client.subscribe_resource(uri)
        await self.call(scenario)
        wanted = [METHODS[key] for key in listen]
        # Changes of an earlier scenario may be reported late.
        while (found := await self.heard.receive())[0] not in wanted:
            pass
        for uri in watched:
            await self.client.unsubscribe_resource(uri)
            await self.call(scenario)  # its notice would be the first that a later scenario gets
        return {"notice": found}

    async def _change(self, scenario: dict[str, Any], heard: Any) -> Any:
        report: dict[str, Any] = {}
        for step in ("add", "remove"):
            await self.call(scenario[step])
            await heard()
            report[step] = [tool["name"] for tool in (await self.list(scenario))["tools"]]
        return report


class Person:
    """Answers questions of servers, in one of several moods."""

    def __init__(self) -> None:
        self.mood = "accept"
        self.asked: list[Any] = []
        self.called, self.dismissed = trio.Event(), trio.Event()

    def callbacks(self) -> dict[str, Any]:
        """Return the options of a client with all capabilities."""
        return {
            "elicitation_callback": self.elicit,
            "sampling_callback": self.sample,
            "sampling_capabilities": types.SamplingCapability(
                tools=types.SamplingToolsCapability()
            ),
            "list_roots_callback": self.roots,
        }

    async def elicit(self, _: Any, params: Any) -> types.ElicitResult:
        question = wire(params)
        self._note("elicitation/create", question)
        if self.mood == "never":
            await self._never()
        if self.mood != "accept":
            return types.ElicitResult(action=self.mood)
        if question.get("mode") == "url":
            return types.ElicitResult(action="accept")
        fields = question["requestedSchema"]["properties"]
        content = {name: fill_in(field, question["message"]) for name, field in fields.items()}
        return types.ElicitResult(action="accept", content=content)

    async def _never(self) -> None:
        self.called.set()
        try:
            await trio.sleep_forever()
        finally:
            self.dismissed.set()

    async def sample(self, _: Any, params: Any) -> types.CreateMessageResult:
        self._note("sampling/createMessage", wire(params))
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(type="text", text="a model's answer"),
            model="tiny",
            stop_reason="endTurn",
        )

    async def roots(self, _: Any) -> types.ListRootsResult:
        self._note("roots/list", {})
        return types.ListRootsResult(roots=[types.Root(uri="file:///work", name="work")])

    def _note(self, method: str, params: dict[str, Any]) -> None:
        params.pop("_meta", None)
        self.asked.append({"method": method, "params": params})


def fill_in(field: dict[str, Any], message: str) -> Any:
    """Fill in a field of a form as all drivers do."""
    if "default" in field:
        return field["default"]
    if field["type"] == "array":
        items = field["items"]
        return [items["enum"][0] if "enum" in items else items["anyOf"][0]["const"]]
    if "oneOf" in field:
        return field["oneOf"][0]["const"]
    if "enum" in field:
        return field["enum"][0]
    return {"boolean": True, "integer": 7, "number": 7}.get(field["type"], f"re: {message}")


def notice(message: Any) -> list[str]:
    """Describe a notification by its method and, if it has one, its URI."""
    uri = getattr(message.params, "uri", None)
    return [message.method] if uri is None else [message.method, str(uri)]


def snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


def wire(value: Any) -> Any:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


async def attempt(driver: Driver, scenario: dict[str, Any]) -> Any:
    """Run one scenario; an error of the peer is a value, any other exception a failure."""
    try:
        with trio.fail_after(PATIENCE):
            return await getattr(driver, scenario["kind"])(scenario)
    except MCPError as error:
        found = {"code": error.error.code, "message": error.error.message}
        return {"error": {**found, "data": error.error.data}}
    except Exception:
        return {"failed": traceback.format_exc()}


async def run(connections: list[dict[str, Any]]) -> dict[str, Any]:
    report: dict[str, Any] = {}
    for connection in connections:
        found: dict[str, Any] = {}
        report[connection["label"]] = found
        try:
            with trio.fail_after(3 * PATIENCE):
                async with trio.open_nursery() as nursery, Driver(connection, nursery) as driver:
                    for scenario in connection["scenarios"]:
                        found[scenario["name"]] = await attempt(driver, scenario)
        except Exception:
            found["connection"] = {"failed": traceback.format_exc()}
    return report


if __name__ == "__main__":
    import warnings

    # What 2026-07-28 deprecates is still part of the older revisions.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    sys.stdout.write(json.dumps(trio.run(partial(run, json.loads(sys.argv[1])))))

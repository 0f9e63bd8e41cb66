"""Servers behind a `Remote`, and a front that has one."""

import json
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from noizu_mcp import Remote, Server
from noizu_mcp.jsonrpc import ErrorResponse, Request
from noizu_mcp.transports import memory_pair


def front_of(*providers, **members):
    """Make the class of a server with these providers."""
    body = {"providers": list(providers), **members}
    return type(Server)("Front", (Server,), body, name="front", version="1")


@pytest.fixture
def behind():
    """Make the class of a front server with one `Remote`, named `up`."""

    def make(target, **options):
        return front_of(Remote(target, **{"prefix": "up", **options}))

    return make


class Life:
    """The runs of a server in memory, which a test may end.

    Attributes:
        server: The class of the server.
        runs: The number of its runs.
        running: The number of runs that have not ended.
        refusal: Raised at the beginning of a run.
    """

    def __init__(self, name="up", **members):
        self.runs = self.running = 0
        self.refusal = None
        self._killed = trio.Event()
        life = self

        class Made(Server, name=name, version="1"):
            tools = members.get("tools", [])
            resources = members.get("resources", [])
            prompts = members.get("prompts", [])

            @asynccontextmanager
            async def lifespan(self):
                life.runs += 1
                if life.refusal is not None:
                    raise life.refusal
                life._killed = trio.Event()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(life._die)
                    life.running += 1
                    try:
                        yield
                    finally:
                        life.running -= 1
                    nursery.cancel_scope.cancel()

        self.server = Made

    async def _die(self):
        await self._killed.wait()
        raise LookupError("killed")

    def kill(self):
        self._killed.set()


@pytest.fixture
def scripted():
    """Make a stream to a server of 2026-07-28 whose answers are data, by method.

    An exception with a code is an error; a tuple is the method and params of a notice, without an
    answer; a function is called with the request.
    """

    def make(**answers):
        ours, theirs = memory_pair()
        discover = {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {
                "tools": {"listChanged": True},
                "prompts": {},
                "resources": {"subscribe": True},
            },
            "serverInfo": {"name": "script", "version": "1"},
        }
        table = {"server/discover": discover, "tools/list": {"tools": []}}
        table |= {"prompts/list": {"prompts": []}, "resources/list": {"resources": []}}
        table |= {"resources/templates/list": {"resourceTemplates": []}}
        table |= {name.replace("__", "/"): answer for name, answer in answers.items()}

        async def run():
            while messages := await theirs.receive():
                for received in messages:
                    request = received.message
                    if isinstance(request, Request):
                        _answer(theirs, request, table.get(request.method))

        ours.script = run
        ours.say = partial(_say, theirs)
        return ours

    return make


@pytest.fixture
def old_script():
    """Make a stream to a server of 2025-11-25 that asks a question during each call."""

    def make(question, result):
        ours, theirs = memory_pair()
        begun = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        begun["serverInfo"] = {"name": "script", "version": "1"}
        tool = {"name": "x", "inputSchema": {"type": "object"}}
        table = {"initialize": begun, "tools/list": {"tools": [tool]}, "tools/call": result}
        waiting, ours.refusals = [], []

        async def run():
            while messages := await theirs.receive():
                for received in messages:
                    message = received.message
                    if isinstance(message, ErrorResponse):
                        ours.refusals.append(message)
                        _answer(theirs, waiting.pop(), result)
                    elif isinstance(message, Request) and message.method == "tools/call":
                        waiting.append(message)
                        asked = {"message": "?", "requestedSchema": {"type": "object"}}
                        if question == "sampling/createMessage":
                            asked = {"messages": [], "maxTokens": 1}
                        _say(theirs, question, asked, id="q")
                    elif isinstance(message, Request):
                        answer = table.get(message.method, Exception(-32601, "no"))
                        _answer(theirs, message, answer)

        ours.script = run
        return ours

    return make


def acknowledged(request):
    """Answer a listen request with its acknowledgement."""
    params = {"notifications": request.params["notifications"]}
    params["_meta"] = {"io.modelcontextprotocol/subscriptionId": request.id}
    return "notifications/subscriptions/acknowledged", params


def _say(stream, method, params=None, **members):
    message = {"jsonrpc": "2.0", "method": method, "params": params or {}, **members}
    stream.send_nowait([json.dumps(message).encode()])


def _answer(stream, request, answer):
    if callable(answer):
        answer = answer(request)
    if answer is None:
        return
    if isinstance(answer, tuple):
        _say(stream, *answer)
        return
    message = {"jsonrpc": "2.0", "id": request.id}
    if isinstance(answer, Exception):
        code, text = answer.args
        message["error"] = {"code": code, "message": text}
    else:
        message["result"] = {"resultType": "complete", **answer}
    stream.send_nowait([json.dumps(message).encode()])


async def until(condition):
    """Wait for a condition that other tasks cause, on a clock that jumps."""
    with trio.fail_after(3600):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await trio.sleep(0.1)

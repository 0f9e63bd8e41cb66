"""Nodes whose tools run as tasks, each with a line to the backend that a test can cut."""

from contextlib import AsyncExitStack, asynccontextmanager

import trio

from noizu_mcp import Context, Schema, Server, Toolkit, mcp
from noizu_mcp.backends import Backend, BackendUnavailable, Memory

from ..kit.messages import CAPABILITIES, call, message
from ..transports.http.wire import serving
from .kit import known

#: The `_meta` of a client that takes tasks and questions.
KNOWS = {
    "_meta": {
        CAPABILITIES: {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}}
    }
}
ENDED = ("completed", "failed", "cancelled")
#: More than the lease of a node, and the time in which its death is seen.
DEATH = 20
KEYS = ["0123456789abcdefghijklmnopqrstuvwxyz"]


class Name(Schema):
    name: str


class Line(Backend):
    """The line of one node to a backend.

    Attributes:
        down: True while every operation fails.
        lost: Operations that are executed, and whose next answer is lost: the name, the begin of
            the key, and the number of answers before that arrive.
        hold: Operations that wait: the name, and the begin of the key.
    """

    def __init__(self, shared):
        self._shared = shared
        self.lease = shared.lease
        self.down = False
        self.lost = []
        self.hold = None
        self._go_on = trio.Event()

    @property
    def epoch(self):
        return self._shared.epoch

    @asynccontextmanager
    async def open(self, name):
        async with self._shared.open(name):
            yield self

    def now(self):
        return self._shared.now()

    def release(self):
        """Let operations that wait go on."""
        self.hold = None
        self._go_on.set()
        self._go_on = trio.Event()

    async def _do(self, operation, *args, **options):
        held = self.hold is not None and operation == self.hold[0]
        if held and str(args[0]).startswith(self.hold[1]):
            await self._go_on.wait()
        if self.down:
            await trio.lowlevel.checkpoint()
            raise BackendUnavailable("the line is cut")
        result = await getattr(self._shared, operation)(*args, **options)
        for each in self.lost:
            if each[0] == operation and args[0].startswith(each[1]):
                each[2] -= 1
                if each[2] < 0:
                    self.lost.remove(each)
                    raise BackendUnavailable("the answer is lost")
                break
        return result

    async def get(self, key, **options):
        return await self._do("get", key, **options)

    async def put(self, key, value, **options):
        return await self._do("put", key, value, **options)

    async def delete(self, key, **options):
        return await self._do("delete", key, **options)

    async def members(self, group):
        return await self._do("members", group)

    async def take(self, key, **options):
        return await self._do("take", key, **options)

    async def append(self, stream, entry, **options):
        return await self._do("append", stream, entry, **options)

    async def read(self, positions, *, wait):
        if self.down:
            await trio.sleep(wait)
        return await self._do("read", positions, wait=wait)

    async def end_of(self, stream):
        return await self._do("end_of", stream)


class Jobs(Toolkit):
    """Tools that run as tasks."""

    def __init__(self, place, log):
        self.place = place
        self.log = log
        self.go_on = trio.Event()

    async def _run(self, ctx, what):
        self.log.append((what, self.place, ctx.attempt))
        try:
            await self.go_on.wait()
        except trio.Cancelled:
            self.log.append((f"{what} cancelled", self.place, ctx.attempt))
            raise
        return f"done at {self.place} in {ctx.attempt}"

    @mcp(task="required")
    async def work(self, ctx: Context) -> str:
        """Work once."""
        return await self._run(ctx, "work")

    @mcp(task="optional")
    async def maybe(self, ctx: Context) -> str:
        """Work once, as a task or not."""
        return await self._run(ctx, "maybe")

    @mcp(task="required", restartable=True, timeout=1000.0)
    async def again(self, ctx: Context, *, what: str = "again") -> str:
        """Work, again where that is necessary."""
        return await self._run(ctx, what)

    @mcp(task="required", restartable=True)
    async def ask(self, ctx: Context) -> str:
        """Ask a name."""
        answer = await ctx.elicit("Name?", Name)
        return f"{answer.content.name} in {ctx.attempt}"

    @mcp(task="optional", starts_task=True, restartable=True)
    async def later(self, ctx: Context) -> str:
        """Ask, step, and only then begin a task."""
        answer = await ctx.elicit("Name?", Name)

        async def step() -> str:
            self.log.append(("step", self.place, ctx.attempt))
            return self.place

        place = await ctx.step(step)
        await ctx.start_task()
        return f"{answer.content.name} from {place}: {await self._run(ctx, 'later')}"

    @mcp(task="optional")
    async def maybe_ask(self, ctx: Context) -> str:
        """Ask a name, as a task or not."""
        self.log.append(("maybe_ask", self.place, ctx.attempt))
        return f"{(await ctx.elicit('Name?', Name)).content.name}"

    @mcp(task="required", restartable=True, requires="write")
    async def own(self, ctx: Context) -> str:
        """Tell who calls."""
        await self._run(ctx, "own")
        return f"{ctx.auth.subject} {ctx.auth['groups']} {ctx.client_info.name} {ctx.meta['m']}"

    @mcp(task="required", requires="write")
    async def large(self, ctx: Context, *, size: int) -> str:
        """Return a large result."""
        return "x" * size

    @mcp(task="required")
    async def counts(self, ctx: Context) -> str:
        """Report progress often."""
        for number in range(100):
            await ctx.report_progress(number, 100)
            await trio.sleep(0.01)
        return await self._run(ctx, "counts")

    @mcp(task="required")
    async def guarded(self, ctx: Context) -> str:
        """Need a scope, also at the end."""
        ctx.require("write")
        try:
            return await self._run(ctx, "guarded")
        finally:
            ctx.require("write")

    @mcp
    async def quick(self, ctx: Context) -> int:
        """Tell the number of the attempt."""
        return ctx.attempt


class Fleet:
    """Nodes that share one backend.

    Attributes:
        backend: The backend.
        wires: A wire to each node.
        lines: The line of each node.
        jobs: The kit of each node.
        log: What the handlers did.
    """

    def __init__(self, backend):
        self.backend = backend
        self.wires, self.lines, self.jobs, self.log = [], [], [], []

    async def send(self, place, method, params=None, headers=()):
        """Send a request to a node; return its answer."""
        body = message(method, {**(params or {}), **KNOWS}, 1)
        named = {"mcp-name": params["taskId"]} if params and "taskId" in params else {}
        exchange = await self.wires[place].send_modern(body, {**named, **dict(headers)})
        return exchange.json

    async def begin(self, place, tool, arguments=None, headers=()):
        """Begin a task at a node; return its id."""
        body = call(tool, arguments, **KNOWS)
        answer = (await self.wires[place].send_modern(body, headers)).json
        assert answer["result"]["resultType"] == "task", answer
        return answer["result"]["taskId"]

    def node(self, place):
        """Return the node at a place."""
        return self.wires[place].endpoint.app.running.node

    async def refused(self, place, tool, headers=()):
        """Call a tool that cannot begin a task at a node; return the error."""
        exchange = await self.wires[place].send_modern(call(tool, **KNOWS), headers)
        return exchange.json["error"]

    async def look(self, place, id_, headers=()):
        """Get a task at a node."""
        answer = await self.send(place, "tasks/get", {"taskId": id_}, headers)
        return answer["result"]

    async def failure(self, place, id_, method="tasks/get", headers=(), **params):
        """Return the code and the text of the error of a request for a task."""
        answer = await self.send(place, method, {"taskId": id_, **params}, headers)
        return answer["error"]["code"], answer["error"]["message"]

    async def until(self, place, id_, *states, seconds=100):
        """Wait for a state of a task at a node; return the task."""
        with trio.fail_after(seconds):
            while True:
                task = await self.look(place, id_)
                if task["status"] in (states or ENDED):
                    return task
                await trio.sleep(0.05)

    async def text(self, place, id_):
        """Return the text of the result of a task."""
        task = await self.until(place, id_)
        assert task["status"] == "completed", task
        return task["result"]["content"][0]["text"]

    def listen(self, place, *ids, uris=(), headers=()):
        """Listen to tasks and resources at a node."""
        wanted = {"taskIds": list(ids), "resourceSubscriptions": list(uris)}
        params = {"notifications": wanted, **KNOWS}
        return self.wires[place].modern(message("subscriptions/listen", params, 1), headers)

    def finish(self):
        """Let all handlers end."""
        for jobs in self.jobs:
            jobs.go_on.set()


def heard(exchange):
    """List the states that a listener has got."""
    return [each["params"]["status"] for each in exchange.messages[1:]]


@asynccontextmanager
async def fleet(count=2, backend=None, *, settled=True, http=None, providers=(), **options):
    """Serve nodes.

    Args:
        count: The number of nodes.
        backend: The backend; None for a new one.
        settled: Wait until the nodes judge each other.
        http: Options of `serving`.
        providers: The providers of each server.
        options: Options of the server.
    """
    found = Fleet(backend or Memory())
    async with AsyncExitStack() as stack:
        for place in range(count):
            line, jobs = Line(found.backend), Jobs(place, found.log)
            await stack.enter_async_context(joined(found, line, jobs, http, options, providers))
        if settled:
            await trio.sleep(DEATH)
        yield found
        found.finish()
        for line in found.lines:
            line.down = False
            line.release()
        await known()


def joined(found, line, jobs, http=None, options=(), given=()):
    """Serve one more node of a fleet."""

    class Work(Server, name="work", version="1", state_keys=KEYS, **dict(options)):
        tools = [jobs]
        if given:
            providers = given

        async def read_resource(self, uri, ctx):
            return uri

        async def subscribe(self, uri, ctx):
            found.log.append(("watched", uri))

    @asynccontextmanager
    async def serve():
        async with serving(Work(), backend=line, **(http or {})) as wire:
            found.wires.append(wire)
            found.lines.append(line)
            found.jobs.append(jobs)
            yield wire

    return serve()

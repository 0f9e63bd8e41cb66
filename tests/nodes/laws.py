"""The promises of many nodes as laws: random operations and faults, and a model of what may happen.

A seed draws a plan: clients, their operations, and faults, each at a time. The plan is executed on
a fleet, on a virtual clock. Each operation records what it saw, and each handler what it did. At
the end all records are compared with the promises. What goes wrong must have an excuse: the node of
a call was killed, the backend had a fault. A broken promise without an excuse is a finding.
"""

import logging
import math
import os
import random
from collections import Counter, defaultdict
from contextlib import asynccontextmanager, contextmanager
from math import inf
from random import Random

import attrs
import pytest
import trio
from trio._core import _run as trio_run
from trio.testing import MockClock

from noizu_mcp import (
    Accept,
    ClientHandler,
    ConnectionClosed,
    Context,
    McpException,
    RequestTimeout,
    Resource,
    Schema,
    Server,
    TaskStarted,
    Toolkit,
    TransportError,
    mcp,
)
from noizu_mcp.backends import BackendUnavailable
from noizu_mcp.policies import RateLimit
from noizu_mcp.testing import Fleet
from noizu_mcp.types import ClientCapabilities, Task

#: Virtual seconds in which operations and faults happen.
LENGTH = 60.0
#: Seconds after a fault of the backend until everything works again.
RECOVERY = 3.0
#: Seconds for a change to reach a subscriber.
TOLD = 1.0
#: Seconds for which a change may still be on the way when its node is killed.
SENDING = 0.5
LEASE = 10.0
#: Uses of the limited tool, in the seconds of the whole plan and more.
LIMIT, PERIOD = 2, 1000.0
URIS = ("shop://tea", "shop://milk")
STATELESS, SESSION = "2026-07-28", "2025-11-25"


#: The switch of trio that makes the order of its tasks depend on a seed.
SCHEDULING = "_ALLOW_DETERMINISTIC_SCHEDULING"


class Form(Schema):
    number: int


@attrs.define(eq=False)
class World:
    """What really happened, whatever the clients were told."""

    begun: Counter = attrs.field(factory=Counter)
    steps: Counter = attrs.field(factory=Counter)
    where: dict = attrs.field(factory=dict)  # the server that ran a call
    changes: list = attrs.field(factory=list)  # (time, server, uri)
    killed: dict = attrs.field(factory=dict)  # the time, by server
    kills: list = attrs.field(factory=list)
    frozen: list = attrs.field(factory=list)  # (begin, end) of nodes that are frozen, or end
    trouble: list = attrs.field(factory=list)  # (begin, end) of faults of the backend
    losses: list = attrs.field(factory=list)  # times at which the backend lost data
    findings: list = attrs.field(factory=list)

    def found(self, text):
        self.findings.append(f"{trio.current_time():.3f}: {text}")

    def begin(self, key, ctx):
        self.begun[key] += 1
        self.where[key] = ctx.server

    def in_trouble(self, begin, end):
        """Tell whether the backend had a fault, or recovers from one."""
        return any(b <= end and begin <= e + RECOVERY for b, e in self.trouble)

    def was_killed(self, key, begin, end):
        """Tell whether the node of a call was killed in a time."""
        server = self.where.get(key)
        if server is not None:
            return begin <= self.killed.get(server, math.inf) <= end
        return any(begin <= at <= end for at in self.kills)


class Limited(RateLimit):
    """Limits one tool, over all nodes."""

    def check(self, call, ctx):
        return super().check(call, ctx) if call.name == "limited" else None


class Tea(Resource, uri=URIS[0], subscribable=True):
    """Tea."""

    async def read(self):
        return "tea"


class Milk(Resource, uri=URIS[1], subscribable=True):
    """Milk."""

    async def read(self):
        return "milk"


class Kit(Toolkit):
    """Tools that record what they do."""

    def __init__(self, world):
        self.world = world

    @mcp
    async def run(self, ctx: Context, *, key: str, seconds: float) -> str:
        """Do something that must not be done twice."""
        self.world.begin(key, ctx)
        await trio.sleep(seconds)
        return key

    @mcp
    async def change(self, ctx: Context, *, key: str, uri: str) -> str:
        """Change a resource."""
        self.world.begin(key, ctx)
        ctx.notify.resource_updated(uri)
        self.world.changes.append((trio.current_time(), ctx.server, uri))
        return key

    @mcp
    async def keep(self, ctx: Context, *, key: str, name: str) -> str:
        """Keep a value in the session."""
        self.world.begin(key, ctx)
        await ctx.put_session(name, key)
        return key

    @mcp
    async def kept(self, ctx: Context, *, key: str, name: str) -> str:
        """Return a value of the session."""
        self.world.begin(key, ctx)
        return str(ctx.session.get(name, ""))

    @mcp
    async def ask(self, ctx: Context, *, key: str) -> str:
        """Ask, and then do something once."""
        self.world.where[key] = ctx.server
        answer = await ctx.elicit(key, Form)
        assert isinstance(answer, Accept)

        async def pay() -> int:
            self.world.steps[key] += 1
            return 1

        await ctx.step(pay)
        return key

    @mcp(task="optional")
    async def work(self, ctx: Context, *, key: str, seconds: float) -> str:
        """Work as a task."""
        self.world.begin(key, ctx)
        await trio.sleep(seconds)
        return key

    @mcp(task="optional", restartable=True)
    async def again(self, ctx: Context, *, key: str, seconds: float) -> str:
        """Work as a task that another node may run again."""
        self.world.begin(key, ctx)
        if ctx.attempt != self.world.begun[key]:
            self.world.found(f"{key} runs the {self.world.begun[key]}. time as {ctx.attempt}")
        await trio.sleep(seconds)
        return key

    @mcp
    async def limited(self, ctx: Context, *, key: str) -> str:
        """Do something that is limited."""
        self.world.begin(key, ctx)
        return key


class Shop(Server, name="shop", version="1.0.0", watchdog=None):
    """A server that records what it does."""

    resources = [Tea, Milk]
    tools = []
    policies = []


class Watcher(ClientHandler):
    """Answers the questions of one client, and records its notifications."""

    def __init__(self):
        self.told = defaultdict(list)
        self.since = dict.fromkeys(URIS, float("inf"))

    async def handle_elicitation(self, params):
        await trio.sleep(0.3)
        return Accept({"number": 1})

    async def handle_notification(self, method, params):
        if method == "notifications/resources/updated":
            self.told[params["uri"]].append(trio.current_time())


@attrs.define(eq=False)
class Call:
    """A call of a client, and what came of it."""

    client: int
    tool: str
    key: str
    arguments: dict
    began: float = 0.0
    ended: float = 0.0
    answer: object = None


TASKS = ("work", "again")
KNOWS = ClientCapabilities(extensions={"io.modelcontextprotocol/tasks": {}})
#: Seconds for a task, and for what may happen to it.
TASK_TIME = 60.0

#: The tools that clients of each era call, with their weights.
TOOLS = {
    STATELESS: {"run": 4, "change": 4, "ask": 2, "limited": 2, "work": 2, "again": 2},
    SESSION: {"run": 4, "change": 3, "ask": 2, "limited": 2, "keep": 4, "kept": 4},
}
FAULTS = ("kill", "stop", "freeze", "down", "slow", "clear", "lose_tail", "lose_answers", "double")


class Trial:
    """One plan, drawn from a seed, and its execution.

    Args:
        seed: The seed.
        eras: The revisions of the clients.
        faults: The faults that may be drawn; empty for a calm day.
        nodes: The number of nodes.
    """

    def __init__(self, seed, eras, faults=FAULTS, nodes=3):
        self.world = World()
        self.random = Random(f"laws-{seed}")
        self.eras = eras
        self.fleet = Fleet(self._make_shop, nodes=nodes, seed=seed, lease=LEASE)
        self.drawn_at = 1.0
        self.watchers = [Watcher() for _ in eras]
        self.calls = [self._draw_call(n) for n in range(12 * len(eras))]
        self.faults = sorted(
            (self.random.uniform(2.0, LENGTH - 20), self.random.choice(faults))
            for _ in range(self.random.randint(1, 5) if faults else 0)
        )

    def _make_shop(self):
        server = Shop()
        server.tools.add(Kit(self.world))
        server.policies.replace([Limited(LIMIT, PERIOD)])
        return server

    def _draw_call(self, number):
        client = self.random.randrange(len(self.eras))
        weights = TOOLS[self.eras[client]]
        (tool,) = self.random.choices(list(weights), list(weights.values()))
        arguments = {"key": f"{tool}-{number}"}
        if tool == "run":
            arguments["seconds"] = self.random.choice([0.0, 0.1, 1.0])
        elif tool in TASKS:
            arguments["seconds"] = self.random.choice([0.0, 1.0, 12.0])
        elif tool == "change":
            arguments["uri"] = self.random.choice(URIS)
        elif tool in ("keep", "kept"):
            arguments["name"] = self.random.choice("ab")
        if self.random.random() > 0.3:
            self.drawn_at = self.random.uniform(1.0, LENGTH - 8)
        # Else at one time with the call before.
        return Call(client, tool, arguments["key"], arguments, self.drawn_at)

    async def execute(self, time_limit=inf):
        """Execute the plan, and judge it."""
        with trio.move_on_after(time_limit) as limit:
            await self._execute()
        if limit.cancelled_caught:
            self.world.findings.append("the trial has not ended")
        else:
            self._judge()

    async def _execute(self):
        async with self.fleet, trio.open_nursery() as clients:
            ready = []
            for number in range(len(self.eras)):
                ready.append(trio.Event())
                clients.start_soon(self._be_client, number, ready[-1])
            for each in ready:
                await each.wait()
            async with trio.open_nursery() as nursery:
                for at, fault in self.faults:
                    nursery.start_soon(self._fail, at, fault)

    async def _be_client(self, number, ready):
        era, watcher = self.eras[number], self.watchers[number]
        async with (
            self.fleet.connect(version=era, handler=watcher, capabilities=KNOWS) as client,
            trio.open_nursery() as nursery,
        ):
            if era == STATELESS:
                await nursery.start(self._listen, client)
            else:
                for uri in URIS:
                    await client.subscribe(uri)
            watcher.since = dict.fromkeys(URIS, trio.current_time())
            ready.set()
            async with trio.open_nursery() as calls:
                for each in self.calls:
                    if each.client == number:
                        calls.start_soon(self._call, client, each)
            # Whatever happened, everything works at the end.
            await trio.sleep_until(LENGTH + LEASE)
            last = Call(number, "run", f"last-{number}", {"key": f"last-{number}", "seconds": 0.0})
            self.calls.append(last)
            await self._call(client, last)
            nursery.cancel_scope.cancel()

    async def _listen(self, client, *, task_status):
        async with client.listen(uris=URIS):
            task_status.started()
            await trio.sleep_forever()

    async def _call(self, client, call):
        await trio.sleep_until(call.began)
        call.began = trio.current_time()
        try:
            call.answer = await client.call_tool(call.tool, call.arguments)
        except TaskStarted as started:
            call.answer = await self._await_task(client, started.task)
        except McpException as error:
            call.answer = error
        call.ended = trio.current_time()

    async def _await_task(self, client, task):
        """Return a task that has ended; the last error where it was not seen to end."""
        answer = RequestTimeout("the task has not ended")
        with trio.move_on_after(TASK_TIME):
            while True:
                try:
                    wire = await client.request("tasks/get", {"taskId": task.task_id})
                except McpException as error:
                    answer = error
                else:
                    answer = Task.from_wire(wire)
                    if answer.status in ("completed", "failed", "cancelled"):
                        return answer
                await trio.sleep(0.5)
        return answer

    # Faults

    async def _fail(self, at, fault):
        await trio.sleep_until(at)
        seconds = self.random.choice([0.5, 3.0, 14.0])
        await getattr(self, f"_{fault}")(seconds)

    def _victim(self):
        running = self.fleet.running
        return self.random.choice(running) if len(running) > 1 else None

    async def _kill(self, seconds):
        victim = self._victim()
        if victim is not None:
            server = self.fleet.app(victim).server
            self.world.killed[server] = trio.current_time()
            self.world.kills.append(trio.current_time())
            self.fleet.kill(victim)
            await self._return(victim, seconds)

    async def _stop(self, seconds):
        victim = self._victim()
        if victim is not None:
            begin = trio.current_time()
            await self.fleet.stop(victim)
            self.world.frozen.append((begin, trio.current_time()))
            await self._return(victim, seconds)

    async def _return(self, node, seconds):
        await trio.sleep(seconds)
        while True:
            try:
                await self.fleet.start(node)
            except BackendUnavailable:
                await trio.sleep(1.0)
            else:
                return

    async def _freeze(self, seconds):
        victim = self._victim()
        if victim is not None:
            self.fleet.freeze(victim, seconds)
            self.world.frozen.append((trio.current_time(), trio.current_time() + seconds))

    @asynccontextmanager
    async def _trouble(self, seconds):
        begin = trio.current_time()
        self.world.trouble.append((begin, begin + seconds))
        yield
        await trio.sleep(seconds)

    async def _down(self, seconds):
        async with self._trouble(seconds):
            self.fleet.backend.down()
        self.fleet.backend.up()

    async def _slow(self, seconds):
        async with self._trouble(seconds):
            self.fleet.backend.slow(self.random.choice([0.2, 0.9, 1.5, 5.0]))
        self.fleet.backend.up()

    async def _clear(self, _seconds):
        async with self._trouble(0.0):
            self.world.losses.append(trio.current_time())
            self.fleet.backend.clear()

    async def _lose_tail(self, _seconds):
        async with self._trouble(0.0):
            self.world.losses.append(trio.current_time())
            self.fleet.backend.lose_tail(self.random.choice([1, 5, 50]))

    async def _lose_answers(self, seconds):
        async with self._trouble(seconds):
            self.fleet.backend.lose_answers(0.3)
        self.fleet.backend.lose_answers(0.0)

    async def _double(self, seconds):
        self.fleet.backend.double_entries(0.5)
        await trio.sleep(seconds)
        self.fleet.backend.double_entries(0.0)

    # Laws

    def _judge(self):
        for call in self.calls:
            if reason := self._fault_of(call):
                shown = getattr(call.answer, "text", call.answer)
                self.world.found(
                    f"{call.key} of {self.eras[call.client]} at {call.began:.3f}:"
                    f" {reason}: {shown!r}"
                )
        for key, count in [*self.world.begun.items(), *self.world.steps.items()]:
            if count > (3 if key.startswith("again") else 1):
                self.world.found(f"{key} was executed {count} times")
        self._judge_changes()
        self._judge_values()
        self._judge_rate()

    def _fault_of(self, call):
        """Return what is wrong with a call; None where nothing is."""
        world, answer = self.world, call.answer
        in_session = self.eras[call.client] == SESSION
        was_killed = world.was_killed(call.key, call.began, call.ended)
        in_trouble = in_session and world.in_trouble(call.began, call.ended)
        if isinstance(answer, Task):
            return self._fault_of_task(call, answer)
        if "shutting down" in str(answer) and self._was_frozen(call):
            # It ran in its request, for longer than a node waits that is stopped in order.
            return None if call.arguments["seconds"] > 3 else "cut short"
        if isinstance(answer, McpException) and call.tool in TASKS and world.begun[call.key]:
            is_lost = bool(world.losses) or was_killed
            return None if is_lost else "the task is lost"
        if isinstance(answer, McpException):
            text = str(answer)
            if was_killed:
                is_clear = isinstance(answer, ConnectionClosed | TransportError) or "node" in text
                return None if is_clear else "the error does not say that the node is gone"
            if in_trouble and call.tool == "ask" and isinstance(answer, RequestTimeout):
                # The client sends its answer once: it was refused, or its node died with it.
                return None
            if isinstance(answer, ConnectionClosed) and self._was_frozen(call):
                return None  # its node was stopped meanwhile
            if in_trouble or (in_session and self._was_frozen(call)):
                return None if "again" in text else "the error does not say to try again"
            return "failed"
        if answer.is_error:
            if call.tool == "limited":
                is_slow = "policy failed" in answer.text and self._disturbed(call.began, call.ended)
                return None if is_slow or "rate limit" in answer.text else "failed"
            if in_trouble or (call.tool == "keep" and world.in_trouble(call.began, call.ended)):
                return None if "again" in answer.text else "the error does not say to try again"
            return "failed"
        if call.tool not in ("kept", "ask") and world.begun[call.key] != 1:
            return f"answered, and executed {world.begun[call.key]} times"
        if call.tool in TASKS:
            return None if world.begun[call.key] == 1 else "answered without one execution"
        if call.tool == "ask" and world.steps[call.key] != 1:
            return f"answered, and executed {world.steps[call.key]} times"
        limit = call.arguments.get("seconds", 1.0) + 2.0
        if call.ended - call.began > limit and not self._disturbed(
            call.began, call.ended, in_session
        ):
            return f"took {call.ended - call.began:.1f} s"
        return None

    def _fault_of_task(self, call, task):
        """Return what is wrong with a task; None where nothing is."""
        world, begun = self.world, self.world.begun[call.key]
        if task.status == "completed":
            most = 1 if call.tool == "work" else 3
            return None if 1 <= begun <= most else f"completed, and executed {begun} times"
        if task.status == "cancelled" and self._was_frozen(call):
            return None  # its node was stopped in order
        if task.status != "failed":
            return f"the task is {task.status}"
        if call.tool == "work" and not self._disturbed(call.began, call.ended):
            return "failed"
        dead = world.killed.get(world.where.get(call.key))
        is_late = dead is not None and call.ended > max(dead, call.began) + LEASE + 3.0 + RECOVERY
        if is_late and not world.in_trouble(call.began, call.ended):
            return f"failed {call.ended - dead:.1f} s after the death of its node"
        return None if "node" in str(task.error) else "the error does not name the node"

    def _was_frozen(self, call):
        return any(b <= call.ended and call.began <= e for b, e in self.world.frozen)

    def _disturbed(self, begin, end, with_trouble=True):
        return any(b <= end and begin <= e for b, e in self._disturbances(with_trouble))

    def _disturbances(self, with_trouble=True):
        yield from self.world.frozen
        yield from ((at, at + 2.0) for at in self.world.kills)
        if with_trouble:
            yield from ((b, e + RECOVERY) for b, e in self.world.trouble)

    def _judge_changes(self):
        for at, server, uri in self.world.changes:
            if self.world.killed.get(server, at + 1000) < at + SENDING:
                continue
            deadline, killed = at + TOLD, self.world.killed.get(server)
            if killed is not None and self.world.in_trouble(at, killed):
                # It had the change still. Nodes judge others after a lease without trouble.
                deadline = max(deadline, killed + 2 * LEASE + RECOVERY)
            for begin, end in sorted(self._disturbances()):
                if begin <= deadline and end >= at - TOLD:
                    deadline = max(deadline, end + RECOVERY)
            for number, watcher in enumerate(self.watchers):
                told = [each for each in watcher.told[uri] if each >= at]
                if watcher.since[uri] < at and not (told and told[0] <= deadline):
                    self.world.found(
                        f"a change of {uri} at {at:.3f} was told {self.eras[number]}"
                        f" client {number} {f'at {told[0]:.3f}' if told else 'never'},"
                        f" not until {deadline:.3f}"
                    )

    def _judge_values(self):
        for call in self.calls:
            if call.tool == "kept" and not isinstance(call.answer, Exception):
                self._judge_value(call)

    def _judge_value(self, call):
        puts = [
            each
            for each in self.calls
            if each.tool == "keep"
            and each.client == call.client
            and each.arguments["name"] == call.arguments["name"]
            and each.began <= call.ended
        ]
        if self.world.losses and self.world.kills:
            return  # a loss that no other node makes up for
        troubles = [*self.world.trouble, *self.world.frozen]
        if any(b <= call.ended and call.began <= e for b, e in troubles):
            return  # a node may serve its copy
        if any(
            at <= each <= at + RECOVERY
            for at in self.world.losses
            for each in [call.began, *(put.ended for put in puts)]
        ):
            return  # a node may have written the record before another one wrote it again
        certain = [p for p in puts if not is_failed(p.answer) and p.ended < call.began]
        last = max((p.began for p in certain), default=0.0)
        allowed = {p.key for p in puts if p.ended >= last}
        if not certain:
            allowed.add("")
        if call.answer.text not in allowed:
            self.world.found(
                f"{call.key} at {call.began:.3f} of client {call.client} returned"
                f" {call.answer.text!r}, not one of {sorted(allowed)}"
            )

    def _judge_rate(self):
        tried = [call for call in self.calls if call.tool == "limited"]
        admitted = sum(self.world.begun[call.key] for call in tried)
        if not self.world.trouble and admitted > LIMIT:
            self.world.found(f"{admitted} calls were admitted, with a limit of {LIMIT}")
        refused = [c for c in tried if not isinstance(c.answer, Exception) and c.answer.is_error]
        is_calm = not self.world.trouble and not self.world.kills and not self.world.frozen
        if refused and is_calm and admitted < LIMIT:
            self.world.found(f"only {admitted} calls were admitted, with a limit of {LIMIT}")


def is_failed(answer):
    """Tell whether a call failed."""
    return isinstance(answer, Exception) or answer.is_error


class _Tracebacks(logging.Handler):
    """Collects records with a traceback, and errors."""

    def __init__(self, world):
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record):
        if "policy Limited failed" in record.getMessage():
            return  # it waits for a node that is frozen
        self._world.found(f"logged: {record.getMessage()} {record.exc_info or ''}")


@contextmanager
def seeded(seed):
    """Draw everything that is random from a seed: ids, pauses, and the order of tasks of trio."""
    generator = Random(f"laws-{seed}")
    trio_run._r.seed(f"laws-{seed}")
    with pytest.MonkeyPatch.context() as patch:
        # What trio does for Hypothesis.
        patch.setattr(trio_run, SCHEDULING, True)
        patch.setattr(os, "urandom", generator.randbytes)
        patch.setattr(random, "_urandom", generator.randbytes)
        yield


def run_trial(seed, *, eras, time_limit=inf, **options):
    """Execute the plan of a seed; return the trial, whose world has the findings.

    After `time_limit` virtual seconds it is a finding that the trial has not ended.
    """
    with seeded(seed):
        trial = Trial(seed, eras, **options)
        collected = _Tracebacks(trial.world)
        logging.getLogger("noizu_mcp").addHandler(collected)
        try:
            trio.run(trial.execute, time_limit, clock=MockClock(autojump_threshold=0))
        finally:
            logging.getLogger("noizu_mcp").removeHandler(collected)
    return trial

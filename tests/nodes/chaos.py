"""Three processes on one Redis behind a proxy, under load, while everything fails in turn.

`python -m tests.nodes.chaos 60` runs it for a minute and prints a report. Every 5 s a node is
killed (kill -9) and started again. Every 20 s Redis is restarted, stopped (SIGSTOP) or emptied, in
turn. The clients are the official client (2025-11-25) and clients of this package, of both eras.
"""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import attrs
import trio

from noizu_mcp import Accept, ClientHandler, McpException, TaskStarted, connect
from noizu_mcp.types import ClientCapabilities, Task

HERE = Path(__file__).parent
NODES = 3
KNOWS = ClientCapabilities(extensions={"io.modelcontextprotocol/tasks": {}})
#: Seconds in which a change arrives, and after a fault of Redis until everything works.
TOLD, RECOVERY = 1.0, 3.0
#: Seconds until the streams of a killed node are opened again.
REOPENED = 2.5
LEASE = 10.0


def free_port():
    """Return a port that is free now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def is_possible():
    """Tell whether the programs are installed."""
    return bool(shutil.which("redis-server") and shutil.which("haproxy"))


@attrs.define(eq=False)
class Report:
    """What happened."""

    calls: Counter = attrs.field(factory=Counter)
    failures: Counter = attrs.field(factory=Counter)
    unexplained: list = attrs.field(factory=list)  # failures without a fault
    doubled: list = attrs.field(factory=list)
    lost: list = attrs.field(factory=list)  # answered, and never executed
    late: list = attrs.field(factory=list)
    changes: int = 0
    memory: dict = attrs.field(factory=dict)
    tracebacks: int = 0
    faults: list = attrs.field(factory=list)  # (begin, end, name)

    def is_disturbed(self, begin, end, after_kill):
        """Tell whether a time has a fault, or the rest of one; in seconds after a kill."""
        rests = {"kill": after_kill}
        return any(
            b <= end and begin <= e + rests.get(name, RECOVERY) for b, e, name in self.faults
        )

    def summary(self):
        data = attrs.asdict(self)
        data["faults"] = Counter(name for *_, name in self.faults)
        for name in ("unexplained", "late", "doubled", "lost"):
            data[name] = [len(data[name]), data[name][:5]]
        return json.dumps(data, indent=1, default=str)


class Watcher(ClientHandler):
    """Records when changes are told."""

    def __init__(self):
        self.told = []

    async def handle_elicitation(self, params):
        return Accept({"number": 1})

    async def handle_notification(self, method, params):
        if method == "notifications/resources/updated":
            self.told.append(trio.current_time())


class Chaos:
    """The processes, the load, and the faults.

    Args:
        folder: For logs.
        seconds: How long.
    """

    def __init__(self, folder, seconds):
        self.folder = Path(folder)
        self.seconds = seconds
        self.report = Report()
        self.random = random.Random(1)
        self.redis_port, self.port = free_port(), free_port()
        self.ports = [free_port() for _ in range(NODES)]
        self.nodes = [None] * NODES
        self.redis = None
        self.journal = self.folder / "journal"
        self.journal.touch()
        self.answered = []
        self.changes = []
        self.watchers = []

    # Processes

    def start_redis(self):
        command = ["redis-server", "--port", str(self.redis_port), "--save", "", "--dir"]
        self.redis = subprocess.Popen([*command, str(self.folder)], stdout=subprocess.DEVNULL)

    def start_node(self, number):
        with (self.folder / f"node{number}.err").open("ab") as stderr:
            self.nodes[number] = subprocess.Popen(
                [
                    *(sys.executable, "-m", "noizu_mcp", "run", f"{HERE / 'chaos_app.py'}:Shop"),
                    *("--http", "--port", str(self.ports[number])),
                    *("--backend", f"redis://127.0.0.1:{self.redis_port}"),
                ],
                env={**os.environ, "CHAOS_JOURNAL": str(self.journal)},
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )

    def start_proxy(self):
        servers = "\n".join(
            f"  server n{n} 127.0.0.1:{port} check inter 100ms fall 1 rise 1"
            for n, port in enumerate(self.ports)
        )
        (self.folder / "haproxy.cfg").write_text(
            "defaults\n  mode http\n  retries 0\n  timeout connect 1s\n  timeout client 60s\n"
            f"  timeout server 60s\nlisten all\n  bind 127.0.0.1:{self.port}\n"
            f"  balance roundrobin\n{servers}\n"
        )
        return subprocess.Popen(
            ["haproxy", "-q", "-f", str(self.folder / "haproxy.cfg")], stderr=subprocess.DEVNULL
        )

    @asynccontextmanager
    async def processes(self):
        self.start_redis()
        for number in range(NODES):
            self.start_node(number)
        proxy = self.start_proxy()
        try:
            for port in self.ports:
                await wait_listening(port)
            # The proxy has looked at each node.
            await trio.sleep(0.5)
            yield
        finally:
            for each in [proxy, self.redis, *self.nodes]:
                each.send_signal(signal.SIGCONT)
                each.kill()
                each.wait()

    # Faults

    def note_fault(self, seconds, name):
        now = trio.current_time()
        self.report.faults.append((now, now + seconds, name))

    async def kill_nodes(self):
        while True:
            await trio.sleep(5.0)
            number = self.random.randrange(NODES)
            # Until the proxy has noticed.
            self.note_fault(0.5, "kill")
            self.nodes[number].kill()
            self.nodes[number].wait()
            self.start_node(number)
            with trio.move_on_after(4.0):
                await wait_listening(self.ports[number])

    async def hurt_redis(self):
        while True:
            for act in (self.restart_redis, self.pause_redis, self.empty_redis):
                await trio.sleep(20.0 if self.seconds > 30 else 7.0)
                await act()

    async def restart_redis(self):
        self.note_fault(2.0, "restart")
        self.redis.kill()
        self.redis.wait()
        await trio.sleep(1.0)
        self.start_redis()

    async def pause_redis(self):
        self.note_fault(3.0, "pause")
        self.redis.send_signal(signal.SIGSTOP)
        await trio.sleep(3.0)
        self.redis.send_signal(signal.SIGCONT)

    async def empty_redis(self):
        self.note_fault(0.1, "flush")
        await trio.run_process(
            ["redis-cli", "-p", str(self.redis_port), "flushall"], capture_stdout=True
        )

    # Load

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/mcp"

    async def be_client(self, number, revision):
        """Call again and again; connect again where the connection was lost."""
        watcher, count = Watcher(), 0
        self.watchers.append(watcher)
        while True:
            with suppress(McpException):
                async with AsyncExitStack() as stack:
                    client = await stack.enter_async_context(
                        connect(self.url, version=revision, handler=watcher, capabilities=KNOWS)
                    )
                    if revision == "2026-07-28":
                        await stack.enter_async_context(client.listen(uris=["shop://tea"]))
                    else:
                        await client.subscribe("shop://tea")
                    failures = 0
                    while failures < 5:
                        tool = ["run", "run", "change", "ask", "work"][count % 5]
                        count += 1
                        key = f"{tool}-{revision}-{number}-{count}"
                        is_good = await self.call(tool, key, partial_call(client, tool, key))
                        failures = 0 if is_good else failures + 1
                        await trio.sleep(self.random.uniform(0.0, 0.1))
            await trio.sleep(0.5)

    async def be_official(self, number):
        """The same with the official client."""
        from mcp import ClientSession
        from mcp.client.streamable_http import streamable_http_client

        count = 0
        while True:
            with suppress(Exception, BaseExceptionGroup):
                async with (
                    streamable_http_client(self.url) as streams,
                    ClientSession(streams[0], streams[1]) as session,
                ):
                    await session.initialize()
                    failures = 0
                    while failures < 5:
                        tool = ["run", "change"][count % 2]
                        count += 1
                        key = f"{tool}-official-{number}-{count}"

                        async def ask(tool=tool, key=key):
                            with trio.fail_after(30):
                                return (await session.call_tool(tool, {"key": key})).content[0].text

                        is_good = await self.call(tool, key, ask)
                        failures = 0 if is_good else failures + 1
                        await trio.sleep(0.05)
            await trio.sleep(0.5)

    async def call(self, tool, key, ask):
        """Call once; True for an answer."""
        began = trio.current_time()
        self.report.calls[tool] += 1
        try:
            text = await ask()
        except Exception as error:  # every failure is counted
            text = error
        ended = trio.current_time()
        if text == key:
            self.answered.append(key)
            if tool == "change":
                self.changes.append(ended)
            return True
        shown = f"{type(text).__name__}: {text}"[:160]
        self.report.failures[shown.partition("(")[0][:80]] += 1
        # A task fails when the lease of its node is over.
        if not self.report.is_disturbed(began, ended, LEASE if tool == "work" else 0.0):
            self.report.unexplained.append(f"{key} at {began:.1f}, {ended - began:.1f} s: {shown}")
        return False

    # The whole

    async def run(self):
        async with self.processes(), trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(self.be_client, number, "2026-07-28")
                nursery.start_soon(self.be_client, number, "2025-11-25")
                nursery.start_soon(self.be_official, number)
            with trio.CancelScope() as faults:
                async with trio.open_nursery() as hurting:
                    hurting.start_soon(self.kill_nodes)
                    hurting.start_soon(self.hurt_redis)
                    await trio.sleep(self.seconds)
                    faults.cancel()
            await trio.sleep(RECOVERY)
            for number, node in enumerate(self.nodes):
                status = Path(f"/proc/{node.pid}/status").read_text()
                (line,) = [each for each in status.splitlines() if each.startswith("VmRSS")]
                self.report.memory[number] = line.split(maxsplit=1)[1]
            nursery.cancel_scope.cancel()
        self.judge()
        return self.report

    def judge(self):
        done = Counter(self.journal.read_text().split())
        self.report.doubled = [key for key, count in done.items() if count > 1]
        self.report.lost = [key for key in self.answered if not done[key]]
        self.report.changes = len(self.changes)
        for at in self.changes:
            for number, watcher in enumerate(self.watchers):
                told = [each for each in watcher.told if each >= at - TOLD]
                if not self.report.is_disturbed(at - TOLD, at + TOLD, REOPENED) and not (
                    told and told[0] <= at + TOLD
                ):
                    late = f"{told[0] - at:.1f} s" if told else "never"
                    self.report.late.append(f"a change at {at:.1f}, client {number}: {late}")
        for each in self.folder.glob("node*.err"):
            self.report.tracebacks += each.read_text().count("Traceback")


def partial_call(client, tool, key):
    """Return a function that calls a tool, and waits for its task."""

    async def ask():
        try:
            return (await client.call_tool(tool, {"key": key})).text
        except TaskStarted as started:
            task = started.task
        while task.status not in ("completed", "failed", "cancelled"):
            await trio.sleep(0.3)
            task = Task.from_wire(await client.request("tasks/get", {"taskId": task.task_id}))
        return task.result["content"][0]["text"] if task.status == "completed" else str(task.error)

    return ask


async def wait_listening(port):
    """Wait until something listens on a port."""
    while True:
        try:
            await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
        except OSError:
            await trio.sleep(0.1)
        else:
            return


def main():
    """Run it for the seconds of the argument, 60 by default."""
    seconds = float(sys.argv[1]) if sys.argv[1:] else 60.0
    if not is_possible():
        sys.exit("redis-server and haproxy are needed")
    with tempfile.TemporaryDirectory() as folder:
        report = trio.run(Chaos(folder, seconds).run)
        print(report.summary())
        for each in sorted(Path(folder).glob("node*.err")):
            print(each.name, each.read_text()[-1500:])


if __name__ == "__main__":
    main()

"""The supervisor of `--workers`: it starts workers, replaces them, and ends them."""

import os
import signal
import socket
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio

from noizu_mcp.backends import Memory
from noizu_mcp.cli.workers import (
    Health,
    Program,
    Supervisor,
    WorkerOptions,
    WorkerProcess,
    merge,
    supervise,
)
from noizu_mcp.transports.http import HostOptions, ListenError
from noizu_mcp.workers import open_balance

SCRIPT = Path(__file__).with_name("scripted_worker.py")
#: Seconds; what takes milliseconds may take many times as long on a busy machine.
PATIENCE = 60


class Lines:
    """Replaces stderr; what is written comes out of a channel."""

    encoding = "utf-8"

    def __init__(self):
        self._send, self.receive = trio.open_memory_channel(100)

    def write(self, text):
        if text.strip():
            self._send.send_nowait(text.strip())

    def flush(self):
        """Do nothing: nothing is buffered."""


class Service:
    """A supervisor of scripted workers that runs beside the test."""

    def __init__(self, folder, news, nursery, balance):
        self._plan, self._news = Path(folder) / "plan", news
        self.news_path = Path(folder) / "news"
        self._nursery = nursery
        words = sys.executable, "-I", "-S", SCRIPT, self._plan, self.news_path
        self.program = {
            "command": list(map(str, words)),
            "listeners": [],
            "balance": balance.fileno(),
            "secret": "secret",
            "backend_of": cache(lambda _name: Memory()),
            "patience": PATIENCE,
            "first_pause": 0.001,
        }
        self._lines = Lines()
        self.status = None

    def start(self, count=2, plan="serve", **program):
        """Start it, in a task."""
        self.plan(plan)
        self.supervisor = Supervisor(Program(**{**self.program, **program}), count)
        self.ended = trio.Event()
        self._nursery.start_soon(self._run)

    async def _run(self):
        before, sys.stderr = sys.stderr, self._lines
        try:
            self.status = await self.supervisor.run("http://x/mcp")
            self.ended.set()
        finally:
            sys.stderr = before

    def plan(self, word):
        """Say what workers do that start from now on."""
        self._plan.write_text(word)

    async def hears(self, *words):
        """Wait for reports of workers, in any order; return process ids by numbers."""
        with trio.fail_after(PATIENCE):
            reports = [(await self._news.recv(100)).decode().split() for _ in words]
        assert Counter(words) == Counter(word for word, *_ in reports)
        return {int(number): int(pid) for _, number, pid in reports}

    async def says(self, text):
        """Wait for the next line, which has some text in it."""
        with trio.fail_after(PATIENCE):
            line = await self._lines.receive.receive()
        assert text in line

    async def says_at_last(self, text):
        """Wait for a line that has some text in it."""
        with trio.fail_after(PATIENCE):
            while text not in await self._lines.receive.receive():
                pass

    async def serves(self, count=2):
        """Wait until it serves; return the process ids."""
        pids = await self.hears(*["started"] * count)
        await self.says(f"noizu-mcp: shop serves at http://x/mcp with {count} worker")
        return pids

    async def get(self, path):
        """Ask its health port; return status and text."""
        return await get(self.supervisor.health, path)

    async def end(self):
        """Wait until it has ended; return its status."""
        with trio.fail_after(PATIENCE):
            await self.ended.wait()
        return self.status


async def get(health, path):
    """Ask an application; return status and text."""
    sent = []

    async def send(message):
        sent.append(message)

    await health({"path": path}, None, send)
    start, body = sent
    return start["status"], body["body"].decode()


def hang_up():
    """Send SIGHUP to this process."""
    os.kill(os.getpid(), signal.SIGHUP)


def terminate():
    """Send SIGTERM to this process."""
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
async def service():
    """A service that is not started."""
    with (
        TemporaryDirectory() as folder,
        open_balance(2) as balance,
        trio.socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as news,
    ):
        await news.bind(f"{folder}/news")
        async with trio.open_nursery() as nursery:
            yield Service(folder, news, nursery, balance)
            nursery.cancel_scope.cancel()


async def test_from_the_start_to_the_end(service):
    """All workers serve, and end with SIGTERM; its health port says so."""
    service.start()
    pids = await service.serves()
    lines = ["ok"]
    for number in (1, 2):
        lines.append(f"worker {number}: pid {pids[number]}, ready")
        lines.append(f"worker {number}: abandoned threads: {number}")
    assert await service.get("/readyz") == (200, "\n".join([*lines, ""]))
    terminate()
    await service.hears("ended", "ended")
    assert await service.end() == 0
    status, text = await service.get("/readyz")
    assert (status, text.splitlines()[0]) == (503, "stopping")


async def test_a_program_that_does_not_start(service):
    """Its status is that of the supervisor, and it is not started a second time."""
    service.start(plan="fail")
    await service.hears("failed")
    assert await service.end() == 3


async def test_a_program_that_is_not_there(service):
    """One line says so."""
    service.start(command=["/nowhere/python"])
    await service.says("worker 1 cannot be started: No such file or directory")
    assert await service.end() == 1


async def test_an_end_before_it_serves(service):
    """A worker that does not serve yet is ended at once."""
    service.start(plan="hang")
    await service.hears("started")
    assert (await service.get("/metrics"))[0] == 404
    assert (await service.get("/readyz"))[0] == 503
    terminate()
    assert await service.end() == 0


async def test_an_end_before_the_start(service):
    """A worker that is ended while it is started is ended as soon as it runs."""
    service.plan("hang")
    worker = WorkerProcess(Program(**service.program), 1)
    worker.end()
    await worker.run()
    assert worker.status == -signal.SIGTERM


async def test_a_worker_that_dies_is_replaced(service):
    """Another one takes its place, as often as it takes."""
    service.start()
    first = await service.serves()
    service.plan("fail")
    os.kill(first[2], signal.SIGKILL)
    await service.says("worker 2 has ended with status -9; it is replaced")
    await service.hears("failed")
    service.plan("serve")
    await service.says_at_last("worker 2 serves again")
    text = (await service.get("/readyz"))[1]
    assert f"worker 1: pid {first[1]}, ready\n" in text
    assert text.count(", ready\n") == 2
    assert str(first[2]) not in text
    terminate()
    assert await service.end() == 0


async def test_sighup_replaces_all(service):
    """The next worker is ready before the former one gets the word; then the next place follows."""
    service.start()
    first = await service.serves()
    hang_up()
    await service.says("the workers are replaced one after the other")
    second = await service.hears("started")
    await service.hears("retired", "started")
    await service.hears("retired")
    await service.says("all workers are replaced")
    assert second.keys() == {1}
    text = (await service.get("/readyz"))[1]
    assert f"worker 1: pid {second[1]}, ready" in text
    assert str(first[2]) not in text
    terminate()
    await service.hears("ended", "ended")
    assert await service.end() == 0


async def test_a_terminal_that_is_closed(service):
    """Its SIGHUP ends the service: the port must not stay in use without a sign of it."""
    master, slave = os.openpty()
    before = os.dup(0)
    os.dup2(slave, 0)
    try:
        service.start()
        await service.serves()
        os.close(master)
        hang_up()
        await service.hears("ended", "ended")
        assert await service.end() == 0
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(slave)


@pytest.mark.slow
async def test_workers_share_what_the_supervisor_keeps(service):
    """They count together, and a worker that replaces another one goes on."""
    words = map(str, (sys.executable, SCRIPT.with_name("counting_worker.py"), service.news_path))
    service.start(command=list(words))
    counts = await service.hears("counted", "counted")
    assert max(counts.values()) == 100
    await service.says("shop serves at")
    hang_up()
    counts = await service.hears("counted", "counted")
    assert max(counts.values()) == 200
    await service.says_at_last("all workers are replaced")
    terminate()
    await service.end()


@pytest.mark.parametrize("plan", ["fail", "hang"])
async def test_a_program_that_does_not_start_again(service, plan):
    """The workers before it go on."""
    service.start(start=PATIENCE if plan == "fail" else 0.2)
    before = await service.serves()
    service.plan(plan)
    hang_up()
    await service.hears("failed" if plan == "fail" else "started")
    await service.says("the workers are replaced one after the other")
    await service.says("worker 1 has not started: the workers before it go on")
    text = (await service.get("/readyz"))[1]
    assert all(f"worker {number}: pid {before[number]}, ready" in text for number in (1, 2))
    terminate()
    await service.hears("ended", "ended")
    assert await service.end() == 0


async def test_a_worker_that_dies_while_it_is_replaced(service):
    """Its place gets one worker, and not another one."""
    service.start(count=1)
    first = await service.serves(1)
    service.plan("hang")
    hang_up()
    await service.says("the workers are replaced one after the other")
    second = await service.hears("started")
    os.kill(first[1], signal.SIGKILL)
    await service.says("worker 1 has ended with status -9; it is replaced")
    service.plan("serve")
    os.kill(second[1], signal.SIGUSR1)
    await service.says("all workers are replaced")
    assert f"pid {second[1]}, ready" in (await service.get("/readyz"))[1]
    os.kill(second[1], signal.SIGKILL)
    await service.says("worker 1 has ended with status -9; it is replaced")
    await service.hears("started")
    await service.says("worker 1 serves again")
    terminate()
    assert await service.end() == 0


async def test_a_worker_that_does_not_end(service):
    """It is killed after a while, and the status says so."""
    service.start(count=1, plan="stay", patience=0.05)
    await service.serves(1)
    terminate()
    assert await service.end() == 1


async def test_metrics(service):
    """All workers are asked; each line says which worker it is from."""
    service.start()
    await service.serves()
    calls = 'calls{worker="1"} 1\ncalls{worker="2"} 2\n'
    for _ in range(2):
        expected = (200, f"# HELP calls Calls.\n# TYPE calls counter\n{calls}")
        assert await service.get("/metrics") == expected
    terminate()
    assert await service.end() == 0


async def test_metrics_of_a_worker_that_hangs(service):
    """They are left out; it is not asked again before it has answered."""
    service.start(count=1, plan="stay", answers={b"metrics": 0.01}, patience=0.05)
    await service.serves(1)
    for _ in range(3):
        assert (await service.get("/metrics"))[0] == 404
    await service.hears("asked")
    terminate()
    assert await service.end() == 1


async def test_the_other_paths_of_a_health_port():
    """It says that it lives, and has nothing else."""
    health = Health(list)
    assert await get(health, "/healthz") == (200, "ok\n")
    assert await get(health, "/readyz") == (503, "starting\n")
    assert await get(health, "/mcp") == (404, "")
    status, text = await get(health, "/metrics")
    assert (status, "pip install 'noizu-mcp[prometheus]'" in text) == (404, True)


def test_metrics_of_several_workers():
    """Each metric is described once, and a sample has one label more."""
    one = b'# HELP a A.\n# TYPE a gauge\na{x="{}"} 1\n# HELP b B.\n# TYPE b gauge\nb 2\n'
    two = b"# HELP b Another B.\n# TYPE b gauge\nb 3\n# HELP c C.\n# TYPE c gauge\n"
    assert merge({2: two, 1: one}).decode().splitlines() == [
        "# HELP a A.",
        "# TYPE a gauge",
        'a{worker="1",x="{}"} 1',
        "# HELP b B.",
        "# TYPE b gauge",
        'b{worker="1"} 2',
        'b{worker="2"} 3',
        "# HELP c C.",
        "# TYPE c gauge",
    ]


def options(**given):
    """Make the options of a service whose workers only print the version."""
    words = {"words": ["--version"], "count": 2, "host": "127.0.0.1", "port": 0, "path": "/mcp"}
    return WorkerOptions(**{**words, "options": HostOptions(health_port=0), "grace": 1, **given})


def test_a_command_that_serves_nothing():
    """It counts as a program that does not start."""
    assert trio.run(supervise, options()) == 1


@pytest.mark.parametrize("which", ["port", "health_port"])
def test_a_port_in_use(which):
    """Nothing is started."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        given = {"port": port} if which == "port" else {"options": HostOptions(health_port=port)}
        with pytest.raises(ListenError, match=f"127.0.0.1:{port}"):
            trio.run(supervise, options(**given))

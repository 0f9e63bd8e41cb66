"""Servers with handlers on asyncio as processes: on stdio, over HTTP, and on other hosts."""

import asyncio
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
import trio
import uvicorn

from noizu_mcp import Accept, ClientHandler, Server, Stdio, Toolkit, aio, connect, mcp

APP = """
import asyncio
import sys
from contextlib import asynccontextmanager

from noizu_mcp import Context, Schema, Server, Toolkit, mcp


class Form(Schema):
    name: str


class Kit(Toolkit):
    @mcp
    async def ask(self, ctx: Context) -> str:
        await asyncio.sleep(0)
        answer = await ctx.elicit("who?", Form)
        process = await asyncio.create_subprocess_exec(
            "echo", answer.content.name, stdout=asyncio.subprocess.PIPE
        )
        return (await process.communicate())[0].decode().strip()

    @mcp
    async def finish(self, ctx: Context) -> str:
        await ctx.report_progress(1)
        await ctx.state.wait()
        return "finished"

    @mcp
    async def hang(self, ctx: Context) -> str:
        await ctx.report_progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            sys.stderr.write("cleaned up\\n")
        return "never"

    @mcp
    async def resist(self, ctx: Context) -> str:
        await ctx.report_progress(1)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass


class App(Server, name="app", version="1", loop="asyncio"):
    tools = [Kit]

    @asynccontextmanager
    async def lifespan(self):
        released = asyncio.Event()
        later = asyncio.get_running_loop().call_later(0.2, released.set)
        yield released
        later.cancel()
        await asyncio.sleep(0)
        sys.stderr.write("closed\\n")
"""
HTTP = f"""{APP}
from noizu_mcp.transports.http import HttpLimits

App().run_http(port=0, limits=HttpLimits(grace=0.1), drain_timeout=0.1, lifespan_timeout=60.0)
"""
# With these timeouts the process ends after 1.3 seconds, whatever still runs.
IMPATIENT = HTTP.replace("60.0", "0.1")
STDIO = f"""{APP}
import trio
from noizu_mcp import serve_stdio

trio.run(lambda: serve_stdio(App(), grace=0.1, handle_signals=True))
"""
SIGNALS = [signal.SIGINT, signal.SIGTERM]


class Human(ClientHandler):
    """Answers questions."""

    async def handle_elicitation(self, params):
        return Accept({"name": params["message"]})


@pytest.fixture
def file(tmp_path):
    """Write a program."""

    def write(text):
        path = tmp_path / f"app{len([*tmp_path.iterdir()])}.py"
        path.write_text(text)
        return str(path)

    return write


@contextmanager
def over_http(path):
    """Run a program that serves over HTTP; yields the process and the URL."""
    process = subprocess.Popen([sys.executable, path], stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_question_of_an_asyncio_handler(file, version):
    """It is answered on both eras, on stdio and over HTTP; child processes work."""
    command = Stdio(sys.executable, "-m", "noizu_mcp", "run", file(APP))
    with trio.fail_after(60), over_http(file(HTTP)) as (_, url):
        for target in (command, url):
            async with connect(target, handler=Human(), version=version) as client:
                assert (await client.call_tool("ask")).content[0].text == "who?"


@pytest.mark.parametrize("how", ["eof", *SIGNALS])
def test_the_end_on_stdio(start, file, how):
    """A call that ends is answered; the lifespan closes on its loop, and the status is 0."""
    peer = start([sys.executable, "-m", "noizu_mcp", "run", file(APP)])
    peer.initialize()
    peer.start("finish")
    peer.close() if how == "eof" else peer.process.send_signal(how)
    assert peer.read()["result"]["content"][0]["text"] == "finished"
    assert peer.read() is None
    assert peer.end() == (0, b"closed\n")


@pytest.mark.parametrize("how", ["eof", *SIGNALS])
def test_a_call_that_hangs_on_stdio(start, file, how):
    """It gets an error, is cancelled, and cleans up before the lifespan closes."""
    peer = start([sys.executable, file(STDIO)])
    peer.initialize()
    peer.start("hang")
    peer.close() if how == "eof" else peer.process.send_signal(how)
    assert peer.read()["error"]["code"] == -32603
    assert peer.end() == (0, b"cleaned up\nclosed\n")


@pytest.mark.parametrize("how", SIGNALS)
async def test_the_end_over_http(file, how):
    """A call that hangs is cancelled, and the process exits with status 0."""
    with trio.fail_after(60), over_http(file(HTTP)) as (process, url):
        async with connect(url) as client, trio.open_nursery() as nursery:
            nursery.start_soon(hang, client, process, how)
        status = await trio.to_thread.run_sync(process.wait, 30)
        assert (status, process.stderr.read()) == (0, "cleaned up\nclosed\n")


async def hang(client, process, how, name="hang"):
    sent = []

    def send(_):
        process.send_signal(how)
        sent.append(how)

    try:
        await client.call_tool(name, progress=send)
    except Exception:
        if not sent:
            raise


async def test_a_call_that_resists_over_http(file):
    """The process exits with status 1, and the log names the call."""
    with trio.fail_after(60), over_http(file(IMPATIENT)) as (process, url):
        async with connect(url) as client, trio.open_nursery() as nursery:
            nursery.start_soon(hang, client, process, signal.SIGTERM, "resist")
        status = await trio.to_thread.run_sync(process.wait, 30)
        assert status == 1
        assert "still at work: tools/call 'resist'" in process.stderr.read()


class Mounted(Toolkit, loop="asyncio"):
    """A kit that uses an object of its host."""

    def __init__(self, queue):
        self.queue = queue

    @mcp
    async def take(self) -> str:
        return await self.queue.get()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_under_uvicorn(loop, version):
    """Handlers share the loop of the host; a client in the program uses HTTP."""

    class Application(Server, name="application", version="1"):
        pass

    async def main(server):
        queue = asyncio.Queue()
        application = Application()
        application.tools.add(Mounted(queue))
        server.config.app = application.asgi()
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0)
        (socket,) = server.servers[0].sockets
        url = f"http://127.0.0.1:{socket.getsockname()[1]}/mcp"
        async with asyncio.timeout(60), aio.connect(url, version=version) as client:
            taking = asyncio.create_task(client.call_tool("take"))
            await queue.put("an item of the host")
            assert (await taking).content[0].text == "an item of the host"
        server.should_exit = True
        await serving

    config = uvicorn.Config("app", port=0, log_level="error", loop=loop, lifespan="on")
    factory = config.get_loop_factory()
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main(uvicorn.Server(config)))

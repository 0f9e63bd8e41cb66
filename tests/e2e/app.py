"""A server whose handlers do what they should not, for tests that run it as a process."""

import ctypes
import importlib
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio

from noizu_mcp import Context, Server, Toolkit, mcp, serve_stdio

sys.path.append(str(Path(__file__).parents[1]))
stray = importlib.import_module("kept").stray

print("imported")
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="logged %(message)s")


def _print_in_child():
    print("forked", flush=True)


def _descriptors_of_child():
    code = "import os; print(*[os.readlink(f'/proc/self/fd/{fd}') for fd in (0, 1, 2)])"
    code += "; print(len(os.listdir('/proc/self/fd')))"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


class Rough(Toolkit):
    @mcp(input={"message": str})
    async def echo(self, args):
        """Say it again."""
        return args.message

    @mcp
    def noise(self) -> str:
        """Write to stdout in every way there is."""
        print("printed")
        logging.getLogger().info("something")
        os.write(1, b"written\n")
        subprocess.run(["echo", "child"], check=True)
        library = ctypes.CDLL(None)
        library.puts(b"C")
        library.fflush(None)
        child = multiprocessing.get_context("fork").Process(target=_print_in_child)
        child.start()
        child.join()
        return "quiet"

    @mcp
    async def noise_in_loop(self) -> str:
        """The same in the task that serves the session."""
        return self.noise()

    @mcp
    def ask(self) -> str:
        """Read from stdin."""
        try:
            return input()
        except EOFError:
            return "nothing to read"

    @mcp
    def descriptors(self) -> str:
        """Say what a child process has open."""
        return _descriptors_of_child()

    @mcp
    def leave_a_child(self) -> str:
        """Start a process that outlives the server, and say which."""
        return str(subprocess.Popen(["sleep", "1000"]).pid)

    @mcp
    def fork_a_child(self) -> str:
        """The same, without a new program."""
        pid = os.fork()
        if pid == 0:
            while True:
                trio.run(trio.sleep, 1000)
        return str(pid)

    @mcp
    async def finish(self, args, ctx: Context) -> str:
        """Say that it began, and end a little later."""
        await ctx.report_progress(1)
        await trio.sleep(0.1)
        return "finished"

    @mcp
    async def stay(self, args, ctx: Context) -> str:
        """Ignore for a moment that it was cancelled."""
        await ctx.report_progress(1)
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.1)
        return ""

    @mcp(timeout=1000.0)
    def block(self, args, ctx: Context) -> str:
        """Hold a thread for ever."""
        ctx.report_progress(1)
        while True:
            pass

    @mcp
    def thread(self, args, ctx: Context) -> str:
        """Hold a thread in a wait."""
        ctx.report_progress(1)
        threading.Event().wait()
        return ""

    @mcp
    async def stray(self) -> str:
        """Raise a cancellation whose scope has ended."""
        await stray()

    @mcp
    def interrupt(self) -> str:
        """Raise in a thread what only Ctrl-C raises, in the main thread."""
        raise KeyboardInterrupt

    @mcp(input={"size": int})
    async def much(self, args):
        """Answer with a lot."""
        return "x" * args.size


class StrayStart(Server, name="stray-start", version="1"):
    """A server that never starts."""

    @asynccontextmanager
    async def lifespan(self):
        await stray()
        yield


class StrayEnd(Server, name="stray-end", version="1"):
    """A server that fails at its end."""

    tools = [Rough]

    @asynccontextmanager
    async def lifespan(self):
        yield
        await stray()


class App(Server, name="app", version="1"):
    tools = [Rough]


if __name__ == "__main__":
    trio.run(partial(serve_stdio, App(), grace=float(sys.argv[1]), handle_signals=True))
    print("served")

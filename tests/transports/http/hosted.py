"""A server under a third-party host: `python hosted.py uvicorn`, or another one of `HOSTS`.

It is mounted in another application, prints its port on stdout, and ends when its stdin does. The
commands of hosts serve `hosted:with_signals`, and end with a signal.
"""

import asyncio
import socket
import sys
import time
from contextlib import asynccontextmanager

import trio
from hypercorn.config import Config

from noizu_mcp import Server, Toolkit, mcp


class Kit(Toolkit):
    @mcp
    async def echo(self, ctx, *, text: str) -> str:
        """Say it again, after a notice."""
        await ctx.report_progress(1)
        await trio.lowlevel.checkpoint()
        return f"{text} {ctx.state}"


class Hosted(Server, name="hosted", version="1"):
    tools = [Kit]

    @asynccontextmanager
    async def lifespan(self):
        yield "state"


def with_signals():
    return Hosted().asgi(handle_signals=True)


def in_starlette():
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app = Hosted().asgi(path="/mcp")
    return Starlette(routes=[Mount("/api", app=app)], lifespan=app.lifespan)


def in_fastapi():
    from fastapi import FastAPI

    app = Hosted().asgi(path="/mcp")
    api = FastAPI(lifespan=lambda _: app.lifespan())
    api.mount("/api", app)
    return api


def in_quart():
    from quart_trio import QuartTrio

    app, quart = Hosted().asgi(path="/mcp"), QuartTrio(__name__)

    @quart.while_serving
    async def lifespan():
        async with app.lifespan():
            yield

    plain = quart.asgi_app

    async def dispatch(scope, receive, send):
        if scope["type"] == "http" and scope["path"].startswith("/api/"):
            await app({**scope, "root_path": "/api"}, receive, send)
        else:
            await plain(scope, receive, send)

    quart.asgi_app = dispatch
    return quart


def config():
    made = Config()
    made.bind = ["127.0.0.1:0"]
    made.errorlog = None
    return made


def say(binds):
    print(binds[0].rpartition(":")[2], flush=True)


async def on_trio(app):
    from hypercorn.trio import serve

    async def stdin_ends():
        await trio.to_thread.run_sync(sys.stdin.read)

    async with trio.open_nursery() as nursery:

        async def run(task_status=trio.TASK_STATUS_IGNORED):
            await serve(app, config(), shutdown_trigger=stdin_ends, task_status=task_status)

        say(await nursery.start(run))


async def on_asyncio(app):
    from hypercorn.asyncio import serve

    settings = config()
    (listener,) = settings.create_sockets().insecure_sockets
    listener.listen()  # from now on clients wait; the host takes over the socket
    print(listener.getsockname()[1], flush=True)
    settings.bind = [f"fd://{listener.detach()}"]
    await serve(app, settings, shutdown_trigger=lambda: asyncio.to_thread(sys.stdin.read))


def on_uvicorn(app):
    import uvicorn

    class Announced(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            print(self.servers[0].sockets[0].getsockname()[1], flush=True)
            self.ending = asyncio.create_task(self.end())

        async def end(self):
            await asyncio.to_thread(sys.stdin.read)
            self.should_exit = True

    settings = uvicorn.Config(app, port=0, log_level="error")
    Announced(settings).run()


async def on_granian(app):
    from granian.constants import Interfaces
    from granian.server.embed import Server as Granian

    with socket.socket() as place:
        # It shares its port with other sockets, so this one can find a free port for it.
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
        options = {"interface": Interfaces.ASGI, "log_enabled": False}
        granian = Granian(app, address="127.0.0.1", port=port, **options)
        serving = asyncio.create_task(granian.serve())
        await asyncio.to_thread(_connect, port)
        print(port, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        granian.stop()
        await serving


def _connect(port):
    """Wait until a host that does not report its start is listening."""
    for _ in range(3000):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)


#: How to serve, by name.
HOSTS = {
    "uvicorn": lambda: on_uvicorn(in_starlette()),
    "fastapi": lambda: on_uvicorn(in_fastapi()),
    "asyncio": lambda: asyncio.run(on_asyncio(in_starlette())),
    "trio": lambda: trio.run(on_trio, in_starlette()),
    "quart": lambda: trio.run(on_trio, in_quart()),
    "granian": lambda: asyncio.run(on_granian(in_starlette())),
}

if __name__ == "__main__":
    HOSTS[sys.argv[1]]()

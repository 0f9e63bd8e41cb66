"""Serves each session in a process of its own, forked from here, so that imports run once.

Started with the descriptor of a socket. Commands: `run NAME GRACE`, with stdin, stdout and stderr
of the new process attached, answered with its id; `wait PID`, answered with its exit status.
"""

import gc
import importlib
import importlib.util
import os
import socket
import sys
import traceback
from functools import partial
from pathlib import Path

import trio

from noizu_mcp.transports import serve_stdio

HERE = Path(__file__).parent
LEAKED = 9
#: Imports of most servers at their start, or for their first question.
MODULES = (
    "jsonschema_rs",
    "cryptography.hazmat.primitives.ciphers.aead",
    "cryptography.hazmat.primitives.kdf.hkdf",
    "noizu_mcp.schema.engines._native",
    "noizu_mcp.schema._elicitation_form",
    "noizu_mcp.server.asking._live",
    "noizu_mcp.server.asking._parked",
    "noizu_mcp.server.asking._rounds",
    "noizu_mcp.server.tasks._running_task",
    "noizu_mcp.server.tasks._task_store",
    "noizu_mcp.telemetry",
)


def load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


async def serve(server, grace):
    async with trio.open_nursery() as nursery:
        connection = await nursery.start(
            partial(serve_stdio, server, grace=grace, handle_signals=True)
        )
    return await sys.modules["leaks"].leaks(connection)


def child(fds, server, grace):
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    found = trio.run(serve, server(), grace)
    if found:
        sys.stderr.write(f"left behind: {found}\n")
        sys.stderr.flush()
        return LEAKED
    return 0


def main(control):
    sys.path.append(str(HERE.parent))
    servers = load("servers")
    load("leaks")
    for name in MODULES:
        importlib.import_module(name)
    # The pages of these objects remain shared.
    gc.freeze()
    while True:
        command, fds, _, _ = socket.recv_fds(control, 1024, 3)
        words = command.decode().split()
        if not words:
            return
        if words[0] == "wait":
            _, status = os.waitpid(int(words[1]), 0)
            control.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            status = 1
            try:
                status = child(fds, getattr(servers, words[1]), float(words[2]))
            except BaseException:
                traceback.print_exc()
            os._exit(status)
        for fd in fds:
            os.close(fd)
        control.send(str(pid).encode())


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))

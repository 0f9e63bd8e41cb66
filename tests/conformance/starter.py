"""Starts the client for the conformance suite by forking: its imports are done once for all.

The suite starts dozens of clients at once, and their imports would take most of the time of a leg.

    python starter.py SOCKET            imports, then runs a client for each connection
    python -I -S starter.py SOCKET URL  asks for one, with its own environment and output
"""

import os
import signal
import socket
import sys
from collections.abc import Sequence

CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "client.py")
#: The variables of the suite begin with this.
PREFIX = "MCP_CONFORMANCE_"
#: Bytes of one request: the URL and these variables, among them a context with tokens.
SIZE = 64 * 1024


def ask(path: str, url: str) -> int:
    """Ask for one run of the client and wait for its exit status."""
    variables = [f"{name}={os.environ[name]}" for name in os.environ if name.startswith(PREFIX)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(path)
        socket.send_fds(connection, ["\0".join([url, *variables]).encode()], [1, 2])
        return int(connection.recv(16) or b"1")


def serve(path: str) -> None:
    """Run a client for each connection, in a process of its own."""
    for name in ("httpx2", "noizu_mcp.client", "noizu_mcp.transports.http.client._stream"):
        __import__(name)
    for name in ("_oauth", "_machines", "_signing", "_redirect"):
        __import__(f"noizu_mcp.auth.client.{name}")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(128)
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            data, fds, _, _ = socket.recv_fds(connection, SIZE, 2)
            if os.fork() == 0:
                status = 1
                try:
                    status = run(data.decode().split("\0"), fds)
                finally:
                    connection.send(str(status).encode())
                    os._exit(status)
            connection.close()
            for fd in fds:
                os.close(fd)


def run(words: Sequence[str], fds: Sequence[int]) -> int:
    """Run the client with the environment and the output of the process that asked."""
    import runpy

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, fd in enumerate(fds, 1):
        os.dup2(fd, number)
    url, *variables = words
    os.environ.update(each.split("=", 1) for each in variables)
    sys.argv = [CLIENT, url]
    try:
        runpy.run_path(CLIENT, run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(ask(*sys.argv[1:]))
    serve(sys.argv[1])

"""Starts a Python program by forking: its imports are done once for all.

For programs that tests start dozens of times, and whose imports would take most of that time.

    python starter.py serve SOCKET PROGRAM MODULE…  imports, then runs a program for each connection
    python -I -S starter.py ask SOCKET WORD…        asks for one run with some words, and with the
                                                    environment and the streams of this process
"""

import os
import signal
import socket
import sys
from collections.abc import Sequence

#: Bytes of one request: the arguments and the environment.
SIZE = 128 * 1024
STREAMS = (0, 1, 2)


def ask(path: str, words: Sequence[str]) -> int:
    """Request one run of the program and wait for its exit status."""
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    request = "\0".join([str(len(words)), *words, *variables])
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(path)
        socket.send_fds(connection, [request.encode()], STREAMS)
        return int(connection.recv(16) or b"1")


def serve(path: str, program: str, modules: Sequence[str]) -> None:
    """Run a program for each connection, in a separate process."""
    sys.path[0] = os.path.dirname(program)
    for name in modules:
        __import__(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # they are not waited for
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(128)
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            data, fds, _, _ = socket.recv_fds(connection, SIZE, len(STREAMS))
            if os.fork() == 0:
                status = 1
                try:
                    status = run(program, data.decode().split("\0"), fds)
                finally:
                    connection.send(str(status).encode())
                    os._exit(status)
            connection.close()
            for fd in fds:
                os.close(fd)


def run(program: str, request: Sequence[str], fds: Sequence[int]) -> int:
    """Run a program with the arguments, environment and streams of the requesting process."""
    import runpy

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, fd in zip(STREAMS, fds, strict=True):
        os.dup2(fd, number)
        os.close(fd)
    count, *rest = request
    os.environ.clear()
    os.environ.update(each.split("=", 1) for each in rest[int(count) :])
    sys.argv = [program, *rest[: int(count)]]
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    role, path, *words = sys.argv[1:]
    if role == "ask":
        sys.exit(ask(path, words))
    serve(path, words[0], words[1:])

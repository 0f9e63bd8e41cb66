"""A worker that starts in a few milliseconds, and reports what it does to a socket of the test.

    python -I -S scripted_worker.py PLAN NEWS

The file PLAN has a word: `serve`, `fail`, `hang` (it does not serve before SIGUSR1), or `stay` (no
word and no signal ends it).
"""

import json
import os
import signal
import socket
import sys

PLAN, NEWS = sys.argv[1:]


def report(word):
    """Send a word, the number of this worker and its process id."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as news:
        news.sendto(f"{word} {place['number']} {os.getpid()}".encode(), NEWS)


def send(data):
    """Send a frame."""
    control.sendall(len(data).to_bytes(4, "big") + data)


def receive(size):
    """Receive some bytes; end with the supervisor."""
    data = b""
    while len(data) < size:
        more = control.recv(size - len(data))
        if not more:
            report("alone")
            os._exit(0)
        data += more
    return data


def end(*_):
    """End in order."""
    report("ended")
    os._exit(0)


place = json.loads(os.environ["NOIZU_MCP_WORKER"])
control = socket.socket(fileno=place["control"])
with open(PLAN) as file:  # noqa: PTH123 - pathlib takes longer to load than all others
    plan = file.read()
if plan == "fail":
    report("failed")
    os._exit(3)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
report("started")
if plan == "hang":
    signal.sigwait([signal.SIGUSR1])
    plan = "serve"
signal.signal(signal.SIGTERM, signal.SIG_IGN if plan == "stay" else end)
send(b"shop")
while True:
    word = receive(int.from_bytes(receive(4), "big"))
    if word == b"metrics":
        if plan == "stay":
            report("asked")
            continue
        send(b"metrics\n# HELP calls Calls.\n# TYPE calls counter\ncalls %d\n" % place["number"])
    elif word == b"ready":
        send(b"ready\nok\nabandoned threads: %d\n" % place["number"])
    elif plan != "stay":
        report("retired")
        os._exit(0)

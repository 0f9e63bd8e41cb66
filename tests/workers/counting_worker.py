"""A worker that counts with the others, and reports the sum to a socket of the test.

python counting_worker.py NEWS
"""

import json
import os
import socket
import sys

import trio

from noizu_mcp.backends import Conflict
from noizu_mcp.workers import MOST, FrameStream, Hub, Place

TIMES = 50


async def add(backend):
    """Add 1 to the counter that all workers share; return the sum."""
    while True:
        record = await backend.get("count")
        count = 1 + int(record.value if record is not None else b"0")
        try:
            version = 0 if record is None else record.version
            await backend.put("count", b"%d" % count, ttl=600, version=version)
        except Conflict:
            continue
        return count


async def main():
    """Count, and serve until the supervisor ends."""
    place = Place(**json.loads(os.environ["NOIZU_MCP_WORKER"]))
    control = trio.socket.from_stdlib_socket(socket.socket(fileno=place.control))
    frames = FrameStream(trio.SocketStream(control), MOST)
    await frames.send(b"shop")
    async with Hub(socket.socket(fileno=place.hub)).open("shop") as backend:
        for _ in range(TIMES):
            count = await add(backend)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as news:
            news.sendto(f"counted {place.number} {count}".encode(), sys.argv[1])
        while await frames.receive() not in (b"retire", None):
            pass


trio.run(main)

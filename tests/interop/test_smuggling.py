"""No ambiguous request passes a real proxy as two requests."""

import re
from collections import defaultdict
from contextlib import suppress
from functools import partial

import pytest
import trio

from noizu_mcp.transports.host import serve_asgi

from .ambiguous import CASES
from .proxies import PROXIES, proxied

#: Concurrent attackers. With more, some would connect and have no time to send before an impatient
#: proxy closes the connection.
CROWD = 32
VICTIM = b"GET /victim/%d HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Recorder:
    """An application whose responses have the number of their request.

    Attributes:
        seen: Numbers of the requests by the number of the case in their path.
    """

    def __init__(self):
        self.seen = defaultdict(list)
        self._count = 0

    async def __call__(self, scope, receive, send):
        path, more = scope["path"], not scope["path"].endswith("early")
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            more = message["more_body"]
        self._count += 1
        case = re.search(r"/(\d{4})/", path)
        self.seen[int(case[1]) if case else path].append(self._count)
        text = b"X-Number: %d\r\nX-Path: %b\r\n" % (self._count, ascii(path).encode())
        # Responses to HEAD have no body, and HTTP/0.9 responses no head.
        is_head = scope["method"] == "HEAD"
        headers = [(b"x-number", b"%d" % self._count)] if is_head else []
        body = b"" if is_head else b"\r\n" + text
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _send_raw(port, data):
    """Send bytes; return the numbers of the answered requests until the proxy closes."""
    got = b""
    try:
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(data)
            while part := await stream.receive_some():
                got += part
    except trio.BrokenResourceError:
        pass  # refused
    return [int(number) for number in re.findall(rb"(?i)\r\nx-number: (\d+)\r\n", got)]


async def _be_victim(port, done):
    """Make requests until the end; return every wrong response."""
    wrong, number = [], 0
    while not done.is_set():
        # An impatient proxy may close the connection of a slow client on a busy machine.
        with suppress(trio.BrokenResourceError):
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                part = b"-"
                while part and not done.is_set():
                    number += 1
                    await stream.send_all(VICTIM % number)
                    got = b""
                    while b"X-Path" not in got and (part := await stream.receive_some()):
                        got += part
                    if b"X-Path" in got and b"X-Path: '/victim/%d'\r\n" % number not in got:
                        wrong.append(got)
    return wrong


@pytest.mark.parametrize("name", PROXIES)
async def test_what_is_one_request_for_a_proxy_is_one_for_the_host(name, nursery, tmp_path):
    """The response to each request of the application goes to the client that sent it."""
    recorder, answered, wrong = Recorder(), {}, []
    host = await nursery.start(partial(serve_asgi, recorder, port=0))
    with trio.fail_after(180), proxied(name, host.port, tmp_path, hurry=True) as port:
        done, crowd = trio.Event(), trio.Semaphore(CROWD)

        async def attack(number, data):
            async with crowd:
                answered[number] = await _send_raw(port, data)

        async def suffer():
            wrong.extend(await _be_victim(port, done))

        async with trio.open_nursery() as victims:
            victims.start_soon(suffer)
            async with trio.open_nursery() as attackers:
                for number, data in enumerate(CASES):
                    attackers.start_soon(attack, number, data)
            done.set()
    host.stop()
    assert wrong == []
    seen = {number: recorder.seen.pop(number, []) for number in answered}
    assert {number: CASES[number] for number in seen if seen[number] != answered[number]} == {}
    assert [path for path in recorder.seen if not path.startswith("/victim/")] == []
    assert sum(map(bool, seen.values())) > len(CASES) / 10

"""Attack a server in many ways at once, and report what its other clients notice.

    python tests/transports/http/attack.py --minutes 2 --memory 256
    python tests/transports/http/attack.py --only hang,leave --seconds 20
    python tests/transports/http/attack.py --server hypercorn --tls

One process serves, another one attacks from 127.0.0.2 and the following addresses, and this one
watches the memory of the server, requests `/healthz`, and makes calls as two honest clients. Linux
only: other systems have a single loopback address. Exit status: 0 if other clients noticed nothing,
else 1.
"""

import argparse
import json
import os
import random
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes

MIB = 1024 * 1024
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
#: Seconds for what should take no time, on a busy machine.
PATIENCE = 180
#: Connections that the server may have open, fewer than the attackers want.
CONNECTIONS = 300
#: Seconds without a request after which a session ends.
IDLE = 5.0
#: Seconds of CPU time of the server for a response of `/healthz`, for an honest call with all of
#: its repetitions, and until either is cancelled. The clock would measure how busy the machine is;
#: after `ENDLESS` of its seconds even a busy machine is no excuse.
HEALTHY, SERVED, PATIENT, ENDLESS = 1.0, 4.0, 20.0, 300.0
WATCHING = "127.0.0.1"
HONEST = {"127.0.0.20": "2025-11-25", "127.0.0.21": "2026-07-28"}


# Requests


def message(method, params=None, id_=None):
    made = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        made["params"] = params
    return made if id_ is None else {**made, "id": id_}


def call(name, id_=1, **arguments):
    return message("tools/call", {"name": name, "arguments": arguments}, id_)


def post(body, headers=()):
    """Encode a POST."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = ["POST /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    lines += ["Accept: application/json, text/event-stream", f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in dict(headers).items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def post_stateless(body):
    """Encode a POST of 2026-07-28."""
    params = {**body["params"], "_meta": META}
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": body["method"]}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return post({**body, "params": params}, headers)


def initialize(version, capabilities=()):
    params = {"protocolVersion": version, "capabilities": dict(capabilities)}
    params["clientInfo"] = {"name": "visitor", "version": "1"}
    return post(message("initialize", params, 0))


@dataclass
class Target:
    """The server that is attacked.

    Attributes:
        port: Its port.
        certificate: The file with its certificate; None without TLS.
    """

    port: int
    certificate: Path | None = None

    async def dial(self, address, receive_buffer=None, protocol="http/1.1"):
        """Connect from an address, with TLS if the server has a certificate."""
        plain = trio.socket.socket()
        try:
            if receive_buffer is not None:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            await plain.bind((address, 0))
            await plain.connect(("127.0.0.1", self.port))
        except BaseException:
            plain.close()
            raise
        stream = trio.SocketStream(plain)
        if self.certificate is None:
            return stream
        context = ssl.create_default_context(cafile=self.certificate)
        context.set_alpn_protocols([protocol])
        return trio.SSLStream(stream, context, server_hostname="127.0.0.1")


def reset(stream):
    """Make a connection end with a reset."""
    plain = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


async def read_answer(stream):
    """Read a response with a length, or a whole stream; return its head and its body."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += await _some(stream)
    head, _, body = got.partition(b"\r\n\r\n")
    sized = re.search(rb"(?i)content-length: (\d+)", head)
    if sized:
        while len(body) < int(sized[1]):
            body += await _some(stream)
    else:
        while not body.endswith(b"0\r\n\r\n"):
            body += await _some(stream)
    return head, body


async def _some(stream):
    part = await stream.receive_some()
    if not part:
        raise trio.BrokenResourceError("the connection ended")
    return part


async def begin(stream, version, capabilities=()):
    """Do the handshake; return the headers of the session."""
    await stream.send_all(initialize(version, capabilities))
    head, _ = await read_answer(stream)
    found = re.search(rb"(?i)mcp-session-id: (\S+)", head)
    if found is None:
        raise trio.BrokenResourceError("no session")
    headers = {"Mcp-Session-Id": found[1].decode(), "MCP-Protocol-Version": version}
    await stream.send_all(post(message("notifications/initialized"), headers))
    await read_answer(stream)
    return headers


async def open_stream(stream, session):
    """Open the standing stream of a session."""
    lines = ["GET /mcp HTTP/1.1", "Host: localhost", "Accept: text/event-stream"]
    lines += [f"{name}: {value}" for name, value in session.items()]
    await stream.send_all("\r\n".join([*lines, "", ""]).encode())


# Attacks: each function is one visit, which is repeated


async def slow_head(dial, memory):
    """Send a head byte by byte."""
    async with await dial() as stream:
        for byte in b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1000:
            await stream.send_all(bytes([byte]))
            await trio.sleep(0.1)


async def slow_body(dial, memory):
    """Send a body a little at a time."""
    async with await dial() as stream:
        head = post_stateless(call("echo", text="x" * (memory // 64)))
        await stream.send_all(head[:2000])
        for at in range(2000, len(head), 100):
            await stream.send_all(head[at : at + 100])
            await trio.sleep(0.1)


async def no_reader(dial, memory):
    """Request a big response, and do not read it."""
    async with await dial(receive_buffer=4096) as stream:
        await stream.send_all(post_stateless(call("big", size=memory // 32)))
        await trio.sleep(8)


async def fat_handshake(dial, memory):
    """Begin sessions with 49 KB of capabilities."""
    async with await dial() as stream:
        fat = {"experimental": {f"{number}": {"x": "y" * 20} for number in range(1500)}}
        for _ in range(20):
            await stream.send_all(initialize("2025-11-25", fat))
            await read_answer(stream)
            await trio.sleep(0.1)


async def fat_array(dial, memory):
    """Request a hundred big responses at once."""
    async with await dial(receive_buffer=4096) as stream:
        session = await begin(stream, "2025-03-26")
        calls = [call("big", number, size=memory // 64) for number in range(100)]
        await stream.send_all(post(calls, session))
        await trio.sleep(3)


async def nested_body(dial, memory):
    """Send a short text that becomes many values, and make the server keep it."""
    async with await dial() as stream:
        body = call("hang", load="@")
        text = json.dumps([[]] * (memory // 1600), separators=(",", ":"))
        params = json.dumps({**body, "params": {**body["params"], "_meta": META}})
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}
        data = params.replace('"@"', text).encode()
        await stream.send_all(post(data, {**headers, "Mcp-Name": "hang"}))
        await read_answer(stream)


async def hang(dial, memory):
    """Make calls that are never answered."""
    async with await dial() as stream:
        if random.random() < 0.5:
            await stream.send_all(post_stateless(call("hang")))
        else:
            session = await begin(stream, "2025-11-25")
            await stream.send_all(post(call("hang"), session))
        await read_answer(stream)


async def idle_stream(dial, memory):
    """Open streams and wait."""
    async with await dial() as stream:
        if random.random() < 0.5:
            wanted = {"notifications": {"toolsListChanged": True}}
            await stream.send_all(post_stateless(message("subscriptions/listen", wanted, 1)))
        else:
            await open_stream(stream, await begin(stream, "2025-11-25"))
        while True:
            await _some(stream)


async def drop_session(dial, memory):
    """Begin a session, open its stream, and leave it."""
    async with await dial() as stream:
        await open_stream(stream, await begin(stream, "2025-11-25"))
        await _some(stream)


async def leave(dial, memory):
    """Leave at any point of a call, with a reset or without."""
    async with await dial() as stream:
        name = random.choice(["echo", "hang", "big"])
        data = post_stateless(call(name, text="x", size=memory // 64))
        await stream.send_all(data[: random.randrange(1, 2 * len(data))])
        if random.random() < 0.5:
            with trio.move_on_after(0.05):
                await stream.receive_some(random.randrange(1, 5000))
        if random.random() < 0.5:
            reset(stream)
        await trio.aclose_forcefully(stream)


# Attacks over HTTP/2


class H2Client:
    """One connection of HTTP/2, which may also violate the protocol.

    Attributes:
        protocol: Its state; pending bytes are sent by `flush`.
        statuses: The status of each response by the number of its stream.
        bodies: The parts of bodies that have arrived.
        ended: The streams that the server has ended.
    """

    def __init__(self, stream):
        loose = {"validate_outbound_headers": False, "normalize_outbound_headers": False}
        self.protocol = H2Connection(H2Configuration(header_encoding=None, **loose))
        self.protocol.initiate_connection()
        self.statuses, self.bodies, self.ended = {}, {}, set()
        self._stream = stream

    def begin(self, method=b"GET", path=b"/healthz", headers=(), *, ends=True):
        """Begin a request; return the number of its stream."""
        number = self.protocol.get_next_available_stream_id()
        names = [(b":method", method), (b":authority", b"localhost")]
        if path is not None:
            names += [(b":scheme", b"http"), (b":path", path)]
        self.protocol.send_headers(number, [*names, *headers], end_stream=ends)
        self.bodies[number] = b""
        return number

    def post(self, data):
        """Begin a request that is encoded as for HTTP/1.1; return the number of its stream."""
        head, _, body = data.partition(b"\r\n\r\n")
        lines = [line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:]]
        values = {name: value for name, value in lines if name != b"host"}
        number = self.begin(b"POST", b"/mcp", values.items(), ends=False)
        self.protocol.send_data(number, body, end_stream=True)
        return number

    async def flush(self):
        data = self.protocol.data_to_send()
        if data:
            await self._stream.send_all(data)

    async def leave(self):
        await trio.aclose_forcefully(self._stream)

    async def read(self):
        """Read what has arrived, and respond as the protocol requires."""
        for event in self.protocol.receive_data(await _some(self._stream)):
            number = getattr(event, "stream_id", None)
            if isinstance(event, ResponseReceived):
                self.statuses[number] = int(dict(event.headers)[b":status"])
            elif isinstance(event, DataReceived):
                self.bodies[number] += event.data
                length = event.flow_controlled_length
                with suppress(ProtocolError):  # the stream was reset
                    self.protocol.acknowledge_received_data(length, number)
            elif isinstance(event, StreamEnded | StreamReset):
                self.ended.add(number)
        await self.flush()

    async def answer(self, number):
        """Read a response to its end; return its status and its body."""
        await self.flush()
        while number not in self.ended:
            await self.read()
        return self.statuses[number], self.bodies[number]

    async def upload(self, number, size, *, ends=True):
        """Send a body as fast as flow control allows."""
        while size and number not in self.ended:
            room = self.protocol.local_flow_control_window(number)
            part = min(room, self.protocol.max_outbound_frame_size, size)
            if part:
                self.protocol.send_data(number, bytes(part), end_stream=ends and part == size)
                size -= part
                await self.flush()
            else:
                await self.read()


@asynccontextmanager
async def open_h2(dial):
    async with await dial() as stream:
        client = H2Client(stream)
        await client.flush()
        yield client


async def h2_unread(dial, memory):
    """Send bodies that are not read; some never end."""
    async with open_h2(dial) as client:
        for path in (b"/nothing", b"/mcp", b"/healthz"):
            ends = random.random() < 0.7
            number = client.begin(random.choice([b"POST", b"GET", b"PUT"]), path, ends=False)
            await client.upload(number, 200_000, ends=ends)
            if ends:
                await client.answer(number)
        await client.answer(client.begin())


async def h2_reset(dial, memory):
    """Reset calls that are running, answered, or just begun."""
    async with open_h2(dial) as client:
        for _ in range(5):
            numbers = [client.begin(ends=random.random() < 0.5) for _ in range(10)]
            numbers += [
                client.post(post_stateless(call(name, text="x", size=100_000)))
                for name in random.choices(["echo", "hang", "big"], k=10)
            ]
            if random.random() < 0.5:
                await client.flush()
                await client.read()
            for number in numbers:
                with suppress(ProtocolError):  # it has ended
                    client.protocol.reset_stream(number)
            await client.flush()
        await client.answer(client.begin())


async def h2_flood(dial, memory):
    """Send pings, settings and priorities of streams, and read little."""
    async with open_h2(dial) as client:
        number = client.post(post_stateless(call("hang")))
        for size in range(100):
            client.protocol.ping(bytes(8))
            client.protocol.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 65_535 - size})
            client.protocol.prioritize(number + 2 * size, depends_on=number + 2 * size + 2)
            client.protocol.increment_flow_control_window(1, None)
        await client.flush()
        await client.read()
        client.begin()
        await client.flush()


async def h2_leave(dial, memory):
    """Leave during responses and bodies, with a reset or without."""
    async with await dial(receive_buffer=4096) as stream:
        client = H2Client(stream)
        for _ in range(10):
            client.post(post_stateless(call("big", size=memory // 256)))
        await client.flush()
        if random.random() < 0.5:
            client.protocol.close_connection()
            await client.flush()
        await trio.sleep(random.random())
        if random.random() < 0.5:
            reset(stream)
        await trio.aclose_forcefully(stream)


def malformed():
    """Encode input at which hypercorn 0.18 fails; yield pairs of a name and the bytes to send."""
    made = {}
    for name, changes in {
        "CONNECT": {"method": b"CONNECT", "path": None},
        "a path that is not ASCII": {"path": b"/\xff"},
        "a method that is not ASCII": {"method": b"\xff"},
    }.items():
        client = H2Client(None)
        client.begin(**changes)
        made[name] = client.protocol.data_to_send()
    client = H2Client(None)
    for number in range(1, 2100, 2):
        client.protocol.prioritize(number)
    made["priorities of a thousand streams"] = client.protocol.data_to_send()
    lines = ["GET / HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket"]
    lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13"]
    made["a WebSocket that speaks too early"] = "\r\n".join([*lines, "", "\xff" * 3]).encode()
    return made


async def h2_malformed(dial, memory):
    """Send requests that are invalid, or become invalid on the way."""
    async with await dial() as stream:
        valid = H2Client(None)
        valid.post(post_stateless(call("echo", text="x")))
        starts = [*malformed().values(), valid.protocol.data_to_send()]
        starts.append(post_stateless(call("echo", text="x")))
        data = bytearray(random.choice(starts))
        for _ in range(random.randrange(4)):
            data[random.randrange(len(data))] = random.randrange(256)
        await stream.send_all(data)
        with trio.move_on_after(0.2):
            await _some(stream)


#: Attacks by name: the function of a visitor, the number of visitors, and the average seconds
#: between two visits of one. Each attack has its own address. A flood of requests that keeps a
#: processor busy is not included: only more processors help against that.
ATTACKS = {
    "slow-head": (slow_head, 60, 1.0),
    "slow-body": (slow_body, 60, 1.0),
    "no-reader": (no_reader, 80, 1.0),
    "fat-handshake": (fat_handshake, 5, 1.0),
    "fat-array": (fat_array, 3, 1.0),
    "nested-body": (nested_body, 60, 2.0),
    "hang": (hang, 150, 1.0),
    "idle-stream": (idle_stream, 100, 1.0),
    "drop-session": (drop_session, 5, 0.1),
    "leave": (leave, 5, 0.1),
}
#: The attacks on a server with HTTP/2.
H2_ATTACKS = {
    "h2-unread": (h2_unread, 10, 0.5),
    "h2-reset": (h2_reset, 10, 0.5),
    "h2-flood": (h2_flood, 10, 0.5),
    "h2-leave": (h2_leave, 10, 0.5),
    "h2-malformed": (h2_malformed, 10, 0.2),
}
ALL = {**ATTACKS, **H2_ATTACKS}


async def attack(target, memory, names):
    """Attack until cancelled."""

    async def repeat(visit, connect, pause):
        while True:
            await trio.sleep(2 * pause * random.random())
            with suppress(OSError, trio.BrokenResourceError, ProtocolError):
                await visit(connect, memory)

    async with trio.open_nursery() as nursery:
        for number, (name, (visit, count, pause)) in enumerate(ALL.items()):
            if name in names:
                protocol = "h2" if name in H2_ATTACKS else "http/1.1"
                connect = partial(target.dial, f"127.0.0.{number + 2}", protocol=protocol)
                for _ in range(count):
                    nursery.start_soon(repeat, visit, connect, pause)


# What others notice


@dataclass
class Report:
    """The observations of one attack.

    Attributes:
        rss: Bytes of memory of the server before the attack.
        most: The most bytes of it during the attack.
        healthy: Seconds, and CPU time of the server, that each answer of `/healthz` took.
        served: The same of each honest call, until its answer was right.
        troubles: What went wrong, in words.
        before: What the server had open before the attack, by name.
        after: What it has open when it is over.
        ended: The exit status of a second server, which takes the place of the first one after that
            was killed in the middle of an attack, and is sent SIGTERM.
    """

    rss: int = 0
    most: int = 0
    healthy: list[tuple[float, float]] = field(default_factory=list)
    served: list[tuple[float, float]] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)
    ended: int | None = None

    def judge(self, memory: int) -> list[str]:
        """List the measurements that are out of bounds."""
        found = list(self.troubles)
        if self.most > self.rss + 2 * memory:
            grown = (self.most - self.rss) / MIB
            found.append(
                f"memory has grown by {grown:.0f} MiB, with {memory / MIB:.0f} MiB allowed"
            )
        found += [
            f"{name} is {self.after[name]:g}, not {count:g}"
            for name, count in self.before.items()
            if self.after[name] > count
        ]
        if self.ended != 0:
            found.append(f"SIGTERM has ended the server with {self.ended}")
        return found

    def judge_times(self) -> list[str]:
        """List what took too long; on a machine with other work that says little."""
        return [
            f"{name} has taken {worst:.1f} s of CPU time"
            for name, times, most in [
                ("/healthz", self.healthy, HEALTHY),
                ("an honest call", self.served, SERVED),
            ]
            if (worst := max(spent for _, spent in times)) > most
        ]


def resident(pid):
    """Read the resident memory of a process in bytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024


def spent(pid):
    """Read the seconds of CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(pid):
    """Count the files and sockets that a process has open."""
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


async def ask(target, data, address=WATCHING):
    """Send one request on a new connection; return the status and the body."""
    async with await target.dial(address) as stream:
        await stream.send_all(data)
        head, body = await read_answer(stream)
    return int(head.split()[1]), body


async def get(target, path):
    return await ask(target, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


async def look(pid, target):
    """Count the open resources of a server."""
    _, body = await get(target, "/metrics")
    counts = re.findall(rb"(?m)^(mcp_sessions|mcp_streams|mcp_requests_in_flight)\S* (\S+)", body)
    found = {"mcp_sessions": 0.0, "mcp_streams": 0.0, "mcp_requests_in_flight": 0.0}
    for name, count in counts:
        found[name.decode()] += float(count)
    _, body = await ask(target, post_stateless(call("tasks")))
    found["tasks"] = float(json.loads(body)["result"]["content"][0]["text"])
    # The two connections of these requests may already be closed.
    found["descriptors"] = max(0, descriptors(pid) - 2)
    return found


class Watch:
    """Watches a server while it is attacked."""

    def __init__(self, pid, target):
        self.report = Report()
        self._pid, self._target, self._until = pid, target, 0.0

    async def run(self, seconds):
        """Watch for this many seconds, and until all pending requests are answered."""
        self._until = trio.current_time() + seconds
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._weigh)
            nursery.start_soon(self._check_health)
            for address, version in HONEST.items():
                nursery.start_soon(self._be_honest, address, version)

    def _now(self):
        return trio.current_time(), spent(self._pid)

    def _since(self, start):
        return tuple(now - then for now, then in zip(self._now(), start, strict=True))

    @asynccontextmanager
    async def _patiently(self):
        """Cancel the block after this much CPU time of the server; yields its cancel scope."""
        start = self._now()

        async def give_up():
            passed = used = 0.0
            while passed < ENDLESS and used < PATIENT:
                await trio.sleep(0.2)
                passed, used = self._since(start)
            scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(give_up)
            with trio.CancelScope() as scope:
                yield scope
            nursery.cancel_scope.cancel()

    async def _weigh(self):
        while trio.current_time() < self._until:
            self.report.most = max(self.report.most, resident(self._pid))
            await trio.sleep(0.05)

    async def _check_health(self):
        while trio.current_time() < self._until:
            start = self._now()
            status = "no answer"
            async with self._patiently():
                try:
                    status, _ = await get(self._target, "/healthz")
                except (OSError, trio.BrokenResourceError) as error:
                    status = repr(error)
            self.report.healthy.append(self._since(start))
            if status != 200:
                self.report.troubles.append(f"/healthz: {status}")
            await trio.sleep(0.2)

    async def _be_honest(self, address, version):
        client = HonestClient(address, self._target, version)
        while trio.current_time() < self._until:
            start = self._now()
            client.said.clear()
            async with self._patiently() as scope:
                while True:
                    if await client.call():
                        break
                    await trio.sleep(0.2)
            self.report.served.append(self._since(start))
            if scope.cancelled_caught:
                self.report.troubles.append(f"an honest call of {version}: {client.said}")
            await trio.sleep(0.1)
        self.report.troubles += client.troubles


class HonestClient:
    """Makes one call after the other, each on a new connection.

    Attributes:
        said: The reasons why the latest call was not answered at once.
        troubles: What no honest client should see.
    """

    def __init__(self, address, target, version):
        self.said: set[str] = set()
        self.troubles: list[str] = []
        self._address, self._target, self._version = address, target, version
        self._session = None
        self._used = 0.0
        self._number = 0

    async def call(self):
        """Try a call; return whether it was answered."""
        self._number += 1
        text = f"{self._address} {self._number}"
        try:
            status, body = await self._send(call("echo", self._number, text=text))
        except (OSError, trio.BrokenResourceError) as error:
            self.said.add(repr(error))
            return False
        if status == 200:
            self._used = trio.current_time()
            if f'"{text}"'.encode() not in body:
                self.troubles.append(f"a wrong answer: {body[:200]}")
            return True
        self.said.add(f"{status} {body[:100]}")
        if status == 404:
            self._session = None
            if trio.current_time() - self._used < IDLE:
                self.troubles.append("an honest session was lost")
        return False

    async def _send(self, asked):
        if self._version == "2026-07-28":
            return await ask(self._target, post_stateless(asked), self._address)
        if self._session is None:
            async with await self._target.dial(self._address) as stream:
                self._session = await begin(stream, self._version)
            self._used = trio.current_time()
        return await ask(self._target, post(asked, self._session), self._address)


@contextmanager
def started(*words: object) -> Iterator[subprocess.Popen[str]]:
    """Run a script of this folder until the end of the block."""
    here = Path(__file__).parent
    script, *rest = map(str, words)
    command = [sys.executable, str(here / script), *rest]
    # Tracing lines would take the time that is measured.
    environment = {**os.environ}
    environment.pop("COVERAGE_PROCESS_CONFIG", None)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def serving(memory: int, server: str, target: Target) -> Iterator[subprocess.Popen[str]]:
    """Run a server until the end of the block, on a free port if the target has none yet."""
    words = [memory, CONNECTIONS, IDLE, target.port, server]
    if target.certificate is not None:
        words.append(target.certificate)
    with started("attacked.py", *words) as process:
        line = process.stderr.readline()
        target.port = int(re.search(r":(\d+)", line)[1])
        # Its log would fill the pipe.
        with subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL):
            yield process
            process.kill()


async def settle(pid, target, before):
    """Wait until a server has no more open than before, or for `PATIENCE`; return what is open."""
    after = dict(before)
    with trio.move_on_after(PATIENCE):
        while True:
            try:
                after = await look(pid, target)
            except (OSError, trio.BrokenResourceError, KeyError, ValueError):
                after = dict.fromkeys(before, float("inf"))
            if all(after[name] <= count for name, count in before.items()):
                break
            await trio.sleep(0.2)
    return after


async def run(
    seconds: float,
    memory: int,
    names=tuple(ATTACKS),
    name: str = "noizu",
    certificate: Path | None = None,
) -> Report:
    """Attack a new server and watch it; then kill it, and attack its replacement.

    Args:
        seconds: How long.
        memory: Bytes that the server has for its clients.
        names: The attacks, of `ALL`.
        name: The server: `noizu` or `hypercorn`.
        certificate: A file with a certificate for 127.0.0.1 and its key; None for no TLS.
    """
    target = Target(0, certificate)
    with serving(memory, name, target) as server:
        words = ["attack.py", "--on", target.port, "--memory", memory // MIB]
        words += ["--only", ",".join(names)]
        if certificate is not None:
            words += ["--certificate", certificate]
        watch = Watch(server.pid, target)
        report = watch.report
        # What a process holds after the first big response and the first page of metrics.
        await ask(target, post_stateless(call("big", size=MIB)))
        await look(server.pid, target)
        report.before = await look(server.pid, target)
        report.rss = resident(server.pid)
        with started(*words) as attackers:
            await watch.run(seconds)
            if attackers.poll() is not None:
                report.troubles.append(f"the attack has ended: {attackers.stderr.read()}")
        report.after = await settle(server.pid, target, report.before)
        with started(*words):
            await trio.sleep(1)
            server.kill()
            await trio.to_thread.run_sync(server.wait)
            # The attackers continue with the next server at once.
            with serving(memory, name, target) as second:
                again = Watch(second.pid, target)
                await again.run(1)
                report.troubles += again.report.troubles
                second.send_signal(signal.SIGTERM)
                await trio.to_thread.run_sync(second.wait)
        report.ended = second.returncode
    return report


def main() -> int:
    """Attack, and print the report."""
    from certificate import make_certificate  # beside this script

    parser = argparse.ArgumentParser(description="Attack a server in many ways at once.")
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--memory", type=int, default=256, help="MiB that the server may use")
    parser.add_argument("--only", help="some of the attacks")
    parser.add_argument("--server", default="noizu", help="noizu or hypercorn")
    parser.add_argument("--tls", action="store_true", help="serve with TLS")
    parser.add_argument("--on", type=int, help="attack this port, and do nothing else")
    parser.add_argument("--certificate", type=Path, help="with --on: that of the server")
    given = parser.parse_args()
    usual = ATTACKS if given.server == "noizu" else H2_ATTACKS
    names = given.only.split(",") if given.only else [*usual]
    memory = given.memory * MIB
    if given.on is not None:
        trio.run(attack, Target(given.on, given.certificate), memory, names)
    seconds = 60 * given.minutes + given.seconds or 15
    with TemporaryDirectory() as folder:
        certificate = make_certificate(Path(folder)) if given.tls else None
        report = trio.run(run, seconds, memory, names, given.server, certificate)
    healthy, served = sorted(report.healthy), sorted(report.served)
    print(f"memory: {report.rss / MIB:.0f} MiB before, at most {report.most / MIB:.0f} MiB")
    for name, times in [("/healthz", healthy), ("honest calls", served)]:
        median, worst = times[len(times) // 2][0], times[-1][0]
        cpu = max(each for _, each in times)
        print(
            f"{name}: {len(times)}, median {median:.3f} s, worst {worst:.3f} s, {cpu:.2f} s of CPU"
        )
    print(f"before: {report.before}\nafter: {report.after}")
    problems = report.judge(memory) + report.judge_times()
    for text in sorted({*problems}):
        print(f"{problems.count(text)} x {text}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())

"""A call with one question to the user over stdio, answered at once."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from ._harness import Benchmark, Case, Sample, Settings, by_era
from ._peers import LEGACY, MODERN, OFFERING, Peer, offering
from ._pipe import Load, Process, encode
from ._windows import columns, measure

TABLES = by_era("ask", "A call with one question over stdio", columns("µs/call"))
#: Revision, peer → row → the tool that asks that way. First what an author writes by default.
ROWS = {
    (LEGACY, "noizu"): {"noizu": "ask", "noizu, InputRequired": "raw"},
    (LEGACY, "mcp"): {"mcp": "live", "mcp, Resolve": "ask"},
    (MODERN, "noizu"): {"noizu": "ask", "noizu, InputRequired": "raw"},
    (MODERN, "mcp"): {"mcp": "ask", "mcp, InputRequired": "raw"},
}
ARGUMENTS = {"text": "hello bench"}
SERVED = b"3 of hello bench"
CAPABILITIES = {"elicitation": {"form": {}}}
ACCEPTED = {"action": "accept", "content": {"count": 3}}
LIVE_ANSWER = b'{"jsonrpc":"2.0","id":%b,"result":{"action":"accept","content":{"count":3}}}\n'
#: The id of a retry is so far from that of its call.
RETRY = 500_000_000
_ID = re.compile(rb'"id": ?(\d+|"[^"]*")')
_KEY = re.compile(rb'"inputRequests": ?\{("[^"]*")')
_STATE = re.compile(rb'"requestState": ?("[^"]*")')


def cases(settings: Settings) -> Iterator[Case]:
    for era, table in TABLES.items():
        for peer in settings.among(OFFERING):
            for row, tool in ROWS[era, peer.name].items():
                yield Case(table, row, partial(time_calls, peer, era, tool, settings))


def time_calls(peer: Peer, era: str, tool: str, settings: Settings) -> Sample:
    params = {"name": tool, "arguments": ARGUMENTS}

    def load(server: Process, window: int) -> Load:
        return Dialogue(
            server, era, "tools/call", params, window, SERVED, capabilities=CAPABILITIES
        )

    return measure(offering(peer), era, load, settings, capabilities=CAPABILITIES)


@dataclass
class Dialogue(Load):
    """Calls that ask once each: with a live request, or with a result that wants a retry."""

    retry: bytes = field(init=False)

    def __post_init__(self) -> None:
        again = {"inputResponses": {"@key": ACCEPTED}, "requestState": "@state"}
        line = encode(self.era, self.method, {**self.params, **again}, RETRY, self.capabilities)
        assert b"%" not in line
        for mark in (b"%d" % RETRY, b'"@key"', b'"@state"'):
            line = line.replace(mark, b"%%(%b)b" % mark.strip(b'"@'))
        self.retry = line.replace(b"%%(%d)b" % RETRY, b"%(id)b")

    def _exchange(self, requests: bytes, count: int) -> tuple[list[bytes], int]:
        """Answer every question at once; result by result, send one more call."""
        size = len(requests) // count
        sent = min(self.window, count)
        self.process.send(requests[: sent * size])
        results: list[bytes] = []
        rest = b""
        while len(results) < count:
            *lines, rest = (rest + self.process.receive()).split(b"\n")
            replies = [self._reply(line) for line in lines]
            found = [line for line, reply in zip(lines, replies, strict=True) if not reply]
            results += found
            more = min(sent + len(found), count)
            self.process.send(b"".join(replies) + requests[sent * size : more * size])
            sent = more
        return [line + b"\n" for line in results], sum(map(len, results))

    def _reply(self, line: bytes) -> bytes:
        """Return what answers the question in a line; nothing if it is the result of a call."""
        if self.era == LEGACY:
            return LIVE_ANSWER % _search(_ID, line) if b'"elicitation/create"' in line else b""
        if b'"input_required"' not in line:
            return b""
        again = b"%d" % (int(_search(_ID, line)) + RETRY)
        key, state = _search(_KEY, line), _search(_STATE, line)
        return self.retry % {b"id": again, b"key": key, b"state": state}

    def _check(self, received: bytes, length: int, ids: range) -> None:
        """Check the results: on 2026-07-28 each has the id of a retry."""
        moved = 0 if self.era == LEGACY else RETRY
        super()._check(received, length, range(ids.start + moved, ids.stop + moved))


def _search(pattern: re.Pattern[bytes], line: bytes) -> bytes:
    found = pattern.search(line)
    if found is None:
        raise RuntimeError(f"unexpected question: {line[:200]!r}")
    return found[1]


BENCHMARK = Benchmark("ask", cases)

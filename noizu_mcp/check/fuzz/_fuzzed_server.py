"""The server under test: a connection in each era, opened again after each death.

Theory of operation. Each era has its own connection, and a command also has one process for each:
state of one era does not affect the other. A connection is opened on first use, and again by
`renew`: after the server died, when it no longer answers, and for a case that must start from
scratch. A server at a URL keeps its state; only the session is new.

After a step whose answer is late or missing the server gets a light request. It distinguishes a
dead server from a tool that hangs, and gives a second answer time to arrive.
"""

import statistics
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import trio

from ..._errors import TransportError
from ..._util import part_of
from ..._value import JSON, JSONObject
from ...protocol import REVISIONS
from ...server import Server
from ...transports import Http, Stdio
from ...types import META_SERVER_INFO
from ..raw import (
    SESSION,
    Conversation,
    Exchange,
    MemoryLink,
    PipeLink,
    StreamLink,
    WebLink,
    start_pipe,
)
from ._case import PROGRESS, Case, Replies, Step
from ._checks import CANARY, CANARY_NAME

#: Seconds for the first answer of a command: `npx` and `uvx` may have to download it.
START_TIMEOUT: Final = 60.0
#: Seconds for an answer after the last one is missing.
ALIVE_TIMEOUT: Final = 2.0
#: Seconds for a server to exit before it is started again.
EXIT_TIMEOUT: Final = 0.5
#: Minimum seconds for an answer while a case is minimised, and the factor on the usual time.
LEAST_PATIENCE: Final = 0.5
PATIENCE_FACTOR: Final = 20
#: Seconds to wait for a second answer.
SETTLE: Final = 0.05
NAME: Final = "noizu-mcp fuzz"
#: Characters of a message that are shown.
MAX_SHOWN: Final = 200


_ServerLink = PipeLink | MemoryLink | WebLink
#: A command, a URL, or a server of this process.
Reached = Stdio | Http | Server | type[Server]
#: The same, or a text that names one.
FuzzTarget = str | Reached


class _FaultNotes:
    """Takes the notes of a connection."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def check(self, rule: str, holds: object, sent: str, seen: str) -> bool:
        """Store a rule that does not hold; see `Notes`."""
        del sent
        if not holds:
            self.found.append((rule, seen))
        return bool(holds)

    def take(self) -> tuple[tuple[str, str], ...]:
        """Return the faults found since the last call."""
        found, self.found = self.found, []
        return tuple(found)


class _Open:
    """A connection in use."""

    def __init__(self, link: _ServerLink, faults: _FaultNotes, talk: Conversation) -> None:
        self.link = link
        self.faults = faults
        self.talk = talk
        self.capabilities: JSONObject = {}
        # The result of `initialize`; empty on 2026-07-28.
        self.beginning: JSONObject = {}
        # Progress tokens of unanswered requests, which may still be running.
        self.unanswered: set[str] = set()
        self.info: JSONObject = {}
        self.used = False

    def take_notifications(self) -> tuple[JSONObject, ...]:
        """Return the notifications since the last call, including late ones.

        Progress of a request without an answer is left out.
        """
        found = tuple(self.link.receiver.notifications)
        self.link.receiver.notifications.clear()
        return tuple(
            each
            for each in found
            if each["method"] != PROGRESS
            or str(part_of(each, "params", dict).get("progressToken")) not in self.unanswered
        )


class FuzzedServer:
    """A server, in both eras.

    Args:
        target: The command, the URL or the server.
        timeout: Seconds for one answer.
        nursery: Runs the readers of processes.

    Attributes:
        calls: The number of requests that were sent.
        timeout: See Args.
        restarts: The number of connections that were reopened.
        failure: The last reason why the server did not support an era.
        start: Seconds that the last connection took.
        version: The revision that connections with a handshake request; None for the latest one.
    """

    def __init__(self, target: Reached, timeout: float, nursery: trio.Nursery) -> None:
        if isinstance(target, Stdio):
            env = {**target.env, CANARY_NAME: CANARY}
            target = Stdio(
                target.command, *target.args, env=env, cwd=target.cwd, stderr=target.stderr
            )
        self.failure = ""
        self.start = 0.0
        self.version: str | None = None
        self.calls = 0
        self.restarts = 0
        self.timeout = timeout
        self._target = target
        self._nursery = nursery
        self._open: dict[bool, _Open] = {}
        self._times: list[float] = []
        self._mirrored: dict[str, Mapping[str, tuple[str, ...]]] = {}
        self._spoken: set[bool] = set()
        self._missing: set[bool] = set()

    @property
    def is_stream(self) -> bool:
        """True if all messages of an era use one stream, which can be reopened."""
        return not isinstance(self._target, Http)

    @property
    def quick(self) -> float:
        """Seconds for an answer when a fault is known, and many cases are to be tried."""
        usual = statistics.median(self._times) if self._times else 0.0
        return min(self.timeout, max(LEAST_PATIENCE, PATIENCE_FACTOR * usual))

    def mirror(self, tool: str, paths: Mapping[str, tuple[str, ...]]) -> None:
        """Store which arguments of a tool are mirrored in HTTP headers."""
        self._mirrored[tool] = paths

    async def connect(self, *, stateless: bool, patience: float | None = None) -> _Open | None:
        """Return the connection of an era; None if the server does not support it.

        Raises:
            TransportError: The command cannot be started.
        """
        if stateless in self._open:
            return self._open[stateless]
        if stateless in self._missing:
            return None
        began = trio.current_time()
        faults = _FaultNotes()
        link = await self._link(faults)
        talk = Conversation(link, self.timeout, stateless=stateless, name=NAME)
        if self.version is not None and not stateless:
            talk.version = self.version
        talk.mirrored = self._mirrored
        found = _Open(link, faults, talk)
        wait = max(START_TIMEOUT, self.timeout) if patience is None else patience
        begun = False
        try:
            begin = _discover if stateless else _initialize
            answer = await begin(found, wait)
            begun = answer is None
            self.failure = self.failure if answer is None else answer.seen
        finally:
            if not begun:
                await _close(found, hard=True)
        if not begun:
            # An era that was supported before is tried again: the server may start slowly.
            if stateless not in self._spoken:
                self._missing.add(stateless)
            return None
        self.start = trio.current_time() - began
        self._spoken.add(stateless)
        self._open[stateless] = found
        return found

    async def _link(self, faults: _FaultNotes) -> _ServerLink:
        if isinstance(self._target, Http):
            return WebLink(self._target, faults)
        if not isinstance(self._target, Stdio):
            server = self._target() if isinstance(self._target, type) else self._target
            found = MemoryLink(server, faults)
            self._nursery.start_soon(found.serve)
            self._nursery.start_soon(found.read)
            return found
        link = await start_pipe(self._target, faults)
        self._nursery.start_soon(link.read)
        self._nursery.start_soon(link.drain)
        return link

    async def aclose(self) -> None:
        """Close all connections, and end the server if it is a command."""
        for stateless in list(self._open):
            await _close(self._open.pop(stateless), hard=False)

    async def renew(self, *, stateless: bool, hard: bool = False) -> None:
        """Reopen the connection of an era.

        Args:
            stateless: The era.
            hard: True to kill the process at once.
        """
        old = self._open.pop(stateless, None)
        if old is not None:
            self.restarts += 1
            await _close(old, hard=hard)

    def is_fresh(self, *, stateless: bool) -> bool:
        """Tell whether nothing was called on the connection of an era."""
        found = self._open.get(stateless)
        return found is None or not found.used

    async def fresh(self, *, stateless: bool) -> _Open | None:
        """Return a connection on which nothing was called."""
        found = await self.connect(stateless=stateless)
        if found is not None and found.used:
            await self.renew(stateless=stateless)
            found = await self.connect(stateless=stateless)
        return found

    async def run(
        self,
        case: Case,
        patience: float | None = None,
        *,
        anew: bool = True,
        settle: bool = True,
    ) -> list[Replies]:
        """Run the steps of a case.

        Args:
            case: The case.
            patience: Seconds for each answer; `timeout` by default.
            anew: True for a connection on which nothing was called.
            settle: See `ask`.

        Returns:
            The outcome of each step, until the server died; an empty list if it does not support
            the era.
        """
        era = case.stateless
        found = await (self.fresh(stateless=era) if anew else self.connect(stateless=era))
        outcomes: list[Replies] = []
        for step in case.steps if found is not None else ():
            outcome = await self.ask(step, stateless=era, patience=patience, settle=settle)
            outcomes.append(outcome)
            if outcome.exchange.ended or outcome.responsive is False:
                break
        return outcomes

    async def ask(
        self,
        step: Step,
        *,
        stateless: bool,
        patience: float | None = None,
        settle: bool = False,
    ) -> Replies:
        """Run one step.

        Args:
            step: The step.
            stateless: The era.
            patience: Seconds for the answer; `timeout` by default.
            settle: True to wait for messages after the answer.

        Returns:
            The outcome. After the server died, the next step gets a new connection.
        """
        found = await self.connect(stateless=stateless)
        if found is None:
            return _unstarted(step)
        self.calls += 1
        found.used = True
        wait = self.timeout if patience is None else patience
        token = found.talk.new_id()
        exchange = await self._send(found, step, token, wait)
        responsive: bool | None = None
        if exchange.answer is not None:
            self._times.append(exchange.seconds)
            del self._times[:-100]
        if settle or not exchange.replied:
            responsive = await self._settle(found, patience=min(ALIVE_TIMEOUT, wait))
        outcome = Replies(
            step,
            exchange,
            found.faults.take(),
            found.take_notifications(),
            token,
            # 2026-07-28 allows them if the request asks for them.
            can_log=not found.talk.stateless and "logging" in found.capabilities,
            responsive=responsive,
            version=found.talk.version,
        )
        if not exchange.replied:
            found.unanswered.add(token)
        if exchange.ended or responsive is False:
            await self.renew(stateless=stateless, hard=True)
        return outcome

    async def _send(self, found: _Open, step: Step, id_: str, patience: float) -> Exchange:
        """Send a request. Its id is also its progress token, and is used for cancellation."""
        talk = found.talk
        message: JSONObject = {"jsonrpc": "2.0", "id": id_, "method": step.method}
        params = dict(step.params)
        envelope = talk.envelope() if talk.stateless else {}
        params["_meta"] = {"progressToken": id_, **envelope, **params.get("_meta", {})}
        message["params"] = params
        if step.cancel_after is not None and talk.stateless and not self.is_stream:
            # Closing its stream is the cancellation (2026-07-28, basic/patterns/cancellation).
            return await talk.send(message, None, min(patience, step.cancel_after))
        if step.cancel_after is None:
            exchange = await talk.send(message, None, patience)
            if not exchange.replied and not exchange.ended:
                await self._cancel(talk, id_)
            return exchange
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel, talk, id_, step.cancel_after)
            exchange = await talk.send(message, None, patience)
            nursery.cancel_scope.cancel()
        return exchange

    async def _cancel(self, talk: Conversation, id_: str, after: float = 0.0) -> None:
        await trio.sleep(after)
        # A request of 2026-07-28 over HTTP is cancelled by closing its stream, which was done.
        if self.is_stream or not talk.stateless:
            await talk.tell("notifications/cancelled", {"requestId": id_})

    async def _settle(
        self, found: _Open, *, pause: float = SETTLE, patience: float = ALIVE_TIMEOUT
    ) -> bool:
        """Send a light request, and wait for a moment; True if it is answered."""
        if isinstance(found.link, StreamLink) and found.link.ended:
            return False
        answer = await found.talk.ask(found.talk.light_method, patience=patience)
        await trio.sleep(pause)
        return answer.replied

    async def post(
        self, message: JSONObject | bytes, *, stateless: bool, patience: float
    ) -> Replies:
        """Send a message unchanged, and check whether the server is still alive.

        Args:
            message: The message, or bytes that are not a message.
            stateless: The era.
            patience: Seconds to wait for the answer, which may also arrive before the answer to the
                next request.
        """
        step = Step(str(message)[:MAX_SHOWN])
        found = await self.connect(stateless=stateless)
        if found is None:
            return _unstarted(step)
        self.calls += 1
        found.used = True
        if isinstance(message, dict):
            exchange = await found.talk.send(message, None, patience)
        elif isinstance(found.link, StreamLink):
            exchange = Exchange(step.method, ended=not await found.link.write(message))
        else:
            headers = found.talk.headers_of({"method": "tools/list"})
            exchange = await found.link.post(message, headers, self.timeout)
        responsive = await self._settle(found, pause=0.0)
        if isinstance(message, dict) and message.get("id") is not None and not exchange.answer:
            exchange.answer = found.link.receiver.answer_to(message["id"])
        outcome = Replies(step, exchange, found.faults.take(), responsive=responsive)
        if exchange.ended or not responsive:
            await self.renew(stateless=stateless, hard=True)
        return outcome


def _unstarted(step: Step) -> Replies:
    return Replies(step, Exchange(step.method, ended=True, failure="it does not start again"))


async def _close(found: _Open, *, hard: bool) -> None:
    with trio.CancelScope(shield=True), suppress(TransportError):
        if isinstance(found.link, PipeLink):
            await found.link.aclose(0.0 if hard else EXIT_TIMEOUT)
            return
        if isinstance(found.link, MemoryLink):
            await found.link.aclose()
            return
        if found.talk.session is not None and not hard:
            # A server keeps a limited number of sessions.
            await found.link.send("DELETE", found.talk.headers_of({"method": ""}), EXIT_TIMEOUT)
        await found.link.aclose()


async def _initialize(found: _Open, patience: float) -> Exchange | None:
    """Begin a handshake; return the answer if the server does not support it."""
    talk = found.talk
    answer = await talk.ask("initialize", talk.greeting(), patience=patience)
    result = answer.result
    if result is None or not isinstance(result.get("protocolVersion"), str):
        return answer
    talk.version = result["protocolVersion"]
    talk.session = answer.headers.get(SESSION)
    revision = REVISIONS.get(talk.version)
    found.link.receiver.takes_lists = revision is not None and revision.batches
    found.beginning = result
    _learn(found, result, result.get("serverInfo"))
    await talk.tell("notifications/initialized")
    return None


async def _discover(found: _Open, patience: float) -> Exchange | None:
    """Begin 2026-07-28; return the answer if the server does not support it."""
    talk = found.talk
    answer = await talk.ask("server/discover", patience=patience)
    result = answer.result
    versions = None if result is None else result.get("supportedVersions")
    # Some servers answer every unknown method with an empty result.
    if result is None or not isinstance(versions, list) or talk.version not in versions:
        return answer
    meta = result.get("_meta")
    _learn(found, result, meta.get(META_SERVER_INFO) if isinstance(meta, dict) else None)
    return None


def _learn(found: _Open, result: JSONObject, info: JSON) -> None:
    capabilities = result.get("capabilities")
    found.capabilities = capabilities if isinstance(capabilities, dict) else {}
    found.info = info if isinstance(info, dict) else {}

"""The checks of `noizu-mcp doctor`: send requests like clients, and check the answers.

Theory of operation. A server may support the revisions with a handshake, 2026-07-28, or both. Each
era is tried on a separate connection, since an old server may close a connection that begins with
`server/discover`. Every byte is examined, so no part of the client is used: its tolerance would
hide faults. No tool that may change something is called, unless `--call` names it.
"""

import statistics
from collections.abc import Callable, Mapping
from typing import Final

import trio

from ..._errors import TransportError
from ..._value import JSONObject
from ...protocol import REVISIONS, STATELESS
from ...transports import Http, Stdio
from ...types import META_SERVER_INFO
from ..raw import EXIT_TIMEOUT, Exchange, PipeLink, WebLink, open_pipe
from ._authorization import check_authorization
from ._checked_conversation import CheckedConversation, check_answers, discover, shake_hands
from ._http_checks import (
    check_callers,
    check_headers,
    check_session,
    check_transport,
    find_elsewhere,
)
from ._lists import check_call, check_lists
from ._report import Report

#: Seconds for the first answer of a command: `npx` and `uvx` may have to download it.
START_TIMEOUT: Final = 60.0
#: Redirects that are followed to the server.
MAX_MOVES: Final = 3


async def examine(
    target: Stdio | Http,
    patience: float,
    *,
    call: str | None = None,
    arguments: Callable[[JSONObject], JSONObject] = lambda _: {},
) -> Report:
    """Check a server.

    Args:
        target: The server, as a command or a URL.
        patience: Seconds to wait for each answer.
        call: The name of a tool that is called once; None to call no tool.
        arguments: Called with the input schema of that tool (empty if the server does not list the
            tool); returns the arguments of the call.

    Returns:
        The findings, and the facts about the server.

    Raises:
        TransportError: `httpx2`, which a URL needs, is not installed.
    """
    examination = _Examination(patience, call, arguments)
    if isinstance(target, Http):
        await examination.web(target)
    else:
        await examination.pipe(target)
    examination.sum_up()
    return examination.report


class _Examination:
    """The checks of one server, in order; see `examine` for the arguments."""

    def __init__(
        self, patience: float, call: str | None, arguments: Callable[[JSONObject], JSONObject]
    ) -> None:
        self.report = Report()
        self._patience = patience
        self._call = call
        self._arguments = arguments
        self._revisions: list[str] = []
        self._times: list[float] = []
        self._called = False

    def sum_up(self) -> None:
        """Record the facts that were learned."""
        facts = self.report.facts
        facts.setdefault("revisions", ", ".join(self._revisions) or "none")
        if self._times:
            facts["answer"] = f"{statistics.median(self._times) * 1000:.1f} ms (median)"
        if self._revisions and REVISIONS.keys().isdisjoint(self._revisions):
            return  # the version itself is a finding
        if self._revisions and STATELESS.name not in self._revisions:
            self.report.check("revision", False, "server/discover", "2026-07-28 is not served")

    async def pipe(self, target: Stdio) -> None:
        """Check a command, in one process for each era."""
        try:
            began = trio.current_time()
            async with open_pipe(target, self.report) as link:
                talk = CheckedConversation(link, self.report, self._patience, stateless=False)
                patience = max(START_TIMEOUT, self._patience)
                found = await self._handshake(talk, patience)
                if found.result is not None:
                    self.report.facts["start"] = f"{trio.current_time() - began:.2f} s"
                    await self._converse(talk, found.result.get("capabilities"))
                    self._end_handshake(talk)
                if not link.ended:
                    await self._end(talk, link, is_alive=found.result is not None)
            async with open_pipe(target, self.report) as link:
                talk = CheckedConversation(link, self.report, self._patience, stateless=True)
                # The second start is about as slow as the first.
                await self._stateless(talk, min(2 * found.seconds, START_TIMEOUT / 2))
        except TransportError as error:
            self.report.check("start", False, "the command", str(error))
            return
        self._judge_start(found)

    async def _end(self, talk: CheckedConversation, link: PipeLink, *, is_alive: bool) -> None:
        """Send an invalid message, and then close the input."""
        if is_alive:
            await link.write(b"{this is no JSON")
            again = await talk.ask("ping")
            sent = "a line that is no JSON, and ping"
            self.report.check("bad-line", again.answer is not None, sent, again.seen)
        if not link.ended:
            ended = await link.end() is not None
            seen = f"it runs on after {EXIT_TIMEOUT:g} s"
            self.report.check("end-of-input", ended, "the end of stdin", seen)

    async def web(self, target: Http) -> None:
        """Check a URL."""
        link = WebLink(target, self.report)
        try:
            talk = CheckedConversation(link, self.report, self._patience, stateless=False)
            began = trio.current_time()
            found = await self._arrive(talk, link)
            took = trio.current_time() - began
            check_transport(link, self.report)
            if found.status == 401:
                await check_authorization(link, self.report, found, self._patience)
                self.report.check("start", True, "", "")
                self.report.facts["revisions"] = "unknown without a token"
                return
            message: JSONObject = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
            if found.result is not None:
                self.report.facts["start"] = f"{took:.2f} s"
                message["params"] = talk.greeting()
                await self._converse(talk, found.result.get("capabilities"))
                await check_session(talk, link)
                self._end_handshake(talk)
            newer = CheckedConversation(link, self.report, self._patience, stateless=True)
            if await self._stateless(newer):
                await check_headers(newer)
                if found.result is None:
                    talk = newer
                    message.update(method="server/discover", params={"_meta": talk.envelope()})
            hint = ""
            if self._revisions:
                await check_callers(
                    link, self.report, message, talk.headers_of(message), self._patience
                )
            elif found.status is not None:
                hint = await find_elsewhere(link, self._patience)
            self._judge_start(found, hint)
        finally:
            with trio.CancelScope(shield=True):
                await link.aclose()

    async def _arrive(self, talk: CheckedConversation, link: WebLink) -> Exchange:
        """Start at the URL, or where it redirects to."""
        found = await self._handshake(talk, self._patience)
        for _ in range(MAX_MOVES):
            place = found.headers.get("location")
            if found.status not in (301, 302, 303, 307, 308) or not place:
                break
            self.report.check("redirect", False, found.sent, f"HTTP {found.status} to {place}")
            if not link.move(place):
                break
            found = await self._handshake(talk, self._patience)
        return found

    async def _handshake(self, talk: CheckedConversation, patience: float) -> Exchange:
        found = await shake_hands(talk, patience)
        self._name((found.result or {}).get("serverInfo"))
        return found

    def _end_handshake(self, talk: CheckedConversation) -> None:
        self._revisions.append(talk.version)
        self._times += talk.times

    async def _stateless(self, talk: CheckedConversation, start: float = 0.0) -> bool:
        """Check 2026-07-28; False if the server does not support it."""
        result = await discover(talk, is_alive=bool(self._revisions), start=start)
        if result is None:
            return False
        self._revisions.insert(0, talk.version)
        meta = result.get("_meta")
        self._name(meta.get(META_SERVER_INFO) if isinstance(meta, Mapping) else None)
        await self._converse(talk, result.get("capabilities"))
        self._times += talk.times
        return True

    async def _converse(self, talk: CheckedConversation, capabilities: object) -> None:
        await check_answers(talk)
        tools = await check_lists(talk, capabilities)
        if self._call is not None and not self._called:
            # Once, not in each era: a tool may change something.
            self._called = True
            tool = next((each for each in tools if each.get("name") == self._call), {})
            schema = tool.get("inputSchema")
            arguments = self._arguments(schema if isinstance(schema, dict) else {})
            await check_call(talk, tools, self._call, arguments)

    def _name(self, info: object) -> None:
        if isinstance(info, Mapping):
            shown = f"{info.get('name', '')} {info.get('version', '')}".strip()
            self.report.facts.setdefault("server", shown)

    def _judge_start(self, found: Exchange, hint: str = "") -> None:
        """Report a server that supports neither era."""
        self.report.check("start", self._revisions, found.sent, f"{found.seen}{hint}")

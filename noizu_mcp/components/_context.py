"""`Context`: the face of a request, as handlers see it, in both eras.

The class is abstract, since this layer knows no requests: the server has its one implementation.
"""

import abc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from .. import types
from .._util import UNSET, Unset
from ..types import (
    ROOTS,
    Accept,
    Cancel,
    Decline,
    Implementation,
    InputRequest,
    ToolDefinition,
)
from ._client_requests import (
    elicit_request,
    elicit_url_request,
    read_elicited,
    read_roots,
    sample_request,
)
from ._log_methods import LogMethods
from ._notify import Notify

if TYPE_CHECKING:
    from ..types import (
        ClientCapabilities,
        Principal,
        ReadResult,
        RequireScopes,
        Root,
        SamplingResult,
        ToolResult,
    )
    from ._capability import Capability
    from ._handle import Handle

Model = TypeVar("Model")

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    # With a default, so that a strict type checker takes `Context` alone.
    State = TypeVarWithDefault("State", default=Any)
else:
    State = TypeVar("State")


class Context(LogMethods, Generic[State]):
    """The request that a handler is working on.

    Handlers get it in their parameter `ctx`; it is not made by hand. It means the same in every era
    of the protocol. Annotated `Context[Stock]`, `ctx.state` is a `Stock` for type checkers.

    Progress and log messages go out when the method is called; awaiting its return value also waits
    until the connection has room, so a loop that awaits cannot outrun its client. In a sync
    handler, which runs in a thread, just call them.
    """

    # A subclass decides whether its instances have a `__dict__`: there is one for each request.
    __slots__ = ()

    @property
    @abc.abstractmethod
    def request_id(self) -> str | int:
        """The JSON-RPC id of the request."""

    @property
    @abc.abstractmethod
    def protocol_version(self) -> str:
        """The revision that the request is served under: `2025-11-25`."""

    @property
    @abc.abstractmethod
    def client_info(self) -> Implementation | None:
        """The implementation that the client names; None if it names none. It proves nothing."""

    @property
    @abc.abstractmethod
    def client_capabilities(self) -> "ClientCapabilities":
        """The capabilities of the client."""

    @property
    @abc.abstractmethod
    def transport(self) -> str:
        """The transport of the request: `stdio`, `http` or `memory`."""

    @property
    @abc.abstractmethod
    def server(self) -> Any:
        """The server that serves the request."""

    @property
    @abc.abstractmethod
    def state(self) -> State:
        """The value that the server's `lifespan` yielded."""

    @property
    @abc.abstractmethod
    def auth(self) -> "Principal | None":
        """The verified caller; None where no verifier is configured."""

    @abc.abstractmethod
    def require(self, scopes: "RequireScopes | str | Sequence[str]") -> None:
        """Go on only if the caller holds some scopes; for scopes that depend on the arguments.

        In a task, every later reader of the task must hold them, too.

        Args:
            scopes: `RequireScopes`, the name of a scope, or some.

        Raises:
            InsufficientScope: The caller lacks one; do not catch it, the client gets the challenge.
            ValueError: No scope is named, or a name is malformed.
        """

    @property
    @abc.abstractmethod
    def threads(self) -> Any:
        """The limiter of the threads that its sync handlers run in, as this client may use them.

        Other work in threads may use it, too: `trio.to_thread.run_sync(work, limiter=ctx.threads)`.
        """

    @property
    @abc.abstractmethod
    def meta(self) -> Mapping[str, Any]:
        """`_meta` of the request, as sent."""

    @property
    @abc.abstractmethod
    def session(self) -> Mapping[str, Any]:
        """The values that `put_session` stored before; read-only; empty on 2026-07-28."""

    @abc.abstractmethod
    async def put_session(self, key: str, value: object) -> None:
        """Store a value for later requests of the same session.

        This request keeps its snapshot: `ctx.session` does not change under a handler.

        Raises:
            NoSessionError: The revision has no sessions (2026-07-28). Return a `Handle` instead,
                and take it back as an argument.
            TypeError: The server has a backend, and the value is not JSON.
            ValueError: The server has a backend, and the values of the session have more than
                256 KiB of JSON.
            McpError: The value cannot be stored now (-32603).
        """

    @abc.abstractmethod
    async def save(self, handle: "Handle") -> None:
        """Store a handle at once, also if the handler fails later; a new one gets its `id`.

        A handle that a tool takes or returns is stored without it, when the handler returns.

        Args:
            handle: An instance of a subclass of `Handle`.

        Raises:
            ToolError: It is larger than `max_size`, there are too many, another call has changed
                it, or it cannot be stored now; let it pass, the model reads the reason.
            TypeError: It is no handle, has values that do not fit its fields, or was deleted; or
                the tool has `read_only_hint`.
        """

    @property
    @abc.abstractmethod
    def cancelled(self) -> bool:
        """True once the client has cancelled the request; for sync handlers that run long."""

    # One method for all questions: the eras differ in how a question travels, not in its words.
    @abc.abstractmethod
    async def _ask(
        self, request: InputRequest, read: Callable[[object], object], timeout: float | Unset | None
    ) -> Any:
        """Ask the client, in the way of its era, and wait for the answer.

        Args:
            request: The question, in the words of the newest revision.
            read: Reads the answer; raises ProtocolError for an invalid answer.
            timeout: Seconds; None for no limit, UNSET for the usual time.
        """

    @property
    @abc.abstractmethod
    def notify(self) -> Notify:
        """Tells all clients of the server of changes, or the client of this session alone."""

    @abc.abstractmethod
    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Report progress, if the client asked for it.

        Args:
            progress: How far it is; a report that is not above the last one is not sent
                (`basic/utilities/progress`: it must increase).
            total: How far it will go, if known.
            message: The present step, for people.
        """

    @abc.abstractmethod
    def release_stream(self, retry_after: float = 1.0) -> Awaitable[None]:
        """Let the client hang up and come back for the rest; for calls that take long.

        On 2025-11-25 over HTTP the answer to the request ends here, and the client must ask
        again for the rest, which is stored for it (`basic/transports`, "Sending Messages to the
        Server"). Everywhere else nothing happens.

        Args:
            retry_after: Seconds that the client is to wait before it comes back.

        Raises:
            ValueError: `retry_after` is negative, or no finite number.
        """

    # A class gives instances of itself, a mapping the values as a dict.
    @overload
    async def elicit(
        self, message: str, model: type[Model], *, timeout: float | Unset | None = UNSET
    ) -> Accept[Model] | Decline | Cancel: ...
    @overload
    async def elicit(
        self, message: str, model: Mapping[str, object], *, timeout: float | Unset | None = UNSET
    ) -> Accept[Any] | Decline | Cancel: ...
    async def elicit(
        self, message: str, model: object, *, timeout: float | Unset | None = UNSET
    ) -> Accept[Any] | Decline | Cancel:
        """Ask the user to fill in a form, and wait for the answer; on every revision.

        Up to 2025-11-25 it is a live request. On 2026-07-28 the request ends, and the handler waits
        for the next one. If it is gone by then, it is run again in another process, and gets the
        answer here; so its questions may depend on its arguments, on answers and on `step` only,
        and side effects before a question belong into `step`.

        Args:
            message: The question to the user, and its reason.
            model: The form: a class with fields, fields as data, or a raw JSON Schema;
                flat in any case. Never for secrets: `elicit_url` is for those.
            timeout: Seconds, on a live request and in a task; None for no limit. Unless given,
                300, and in a task as long as it lives.

        Returns:
            `Accept` with an instance of `model`, `Decline` or `Cancel`.

        Raises:
            DefinitionError: The model is not flat.
            TypeError: The message is no text.
            McpError: The client cannot do it (-32021 on 2026-07-28), or refused. No client of
                2025-06-18 can let a user choose several values.
            RequestTimeout: There was no answer in time.
        """
        # Before anything is sent: a model that is not flat is a mistake of the author, whatever the
        # client can do.
        request, shape = elicit_request(message, model)
        answer: Accept[object] | Decline | Cancel = await self._ask(
            request, partial(read_elicited, shape), timeout
        )
        return answer

    async def elicit_url(
        self, message: str, url: str, *, timeout: float | Unset | None = UNSET
    ) -> Accept[None] | Decline | Cancel:
        """Ask the user to open a URL; accepting is consent, not completion.

        Args:
            message: Why the user should open it.
            url: The URL; without secrets and without data of the user.
            timeout: Seconds, on a live request and in a task; None for no limit. Unless given,
                300, and in a task as long as it lives.

        Returns:
            `Accept`, `Decline` or `Cancel`.

        Raises:
            TypeError: The message is no text.
            ValueError: The URL is not valid.
            McpError: The client cannot do it, or refused.
            RequestTimeout: There was no answer in time.
        """
        request = elicit_url_request(message, url)
        answer: Accept[None] | Decline | Cancel = await self._ask(
            request, partial(read_elicited, None), timeout
        )
        return answer

    async def sample(
        self,
        messages: str | Sequence[object],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        temperature: float | None = None,
        model_preferences: Mapping[str, object] | None = None,
        stop_sequences: Sequence[str] | None = None,
        metadata: Mapping[str, object] | None = None,
        tools: Sequence[ToolDefinition | Mapping[str, object]] | None = None,
        tool_choice: Mapping[str, object] | None = None,
        timeout: float | Unset | None = UNSET,
    ) -> "SamplingResult":
        """Ask the client's model, and wait for its answer; on every revision, see `elicit`.

        Args:
            messages: One text of the user, or a list of texts, `PromptMessage`s, earlier results
                and mappings in the shape of the wire.
            max_tokens: How much it may say.
            system_prompt: Instructions for the model.
            temperature: How free it is.
            model_preferences: `{"hints": [{"name": …}], "costPriority": …}`.
            stop_sequences: Where it is to stop.
            metadata: For the provider of the model.
            tools: Tools that it may call (2025-11-25 and later): definitions, or mappings in the
                shape of the wire.
            tool_choice: `{"mode": "auto" | "required" | "none"}`.
            timeout: Seconds, on a live request and in a task; None for no limit. Unless given,
                60, and in a task as long as it lives.

        Raises:
            TypeError: A message is malformed.
            ValueError: `max_tokens` is no whole number above 0.
            McpError: The client cannot do it, or refused.
            RequestTimeout: It did not answer in time.
        """
        request = sample_request(
            messages,
            max_tokens,
            {
                "model_preferences": model_preferences,
                "system_prompt": system_prompt,
                "temperature": temperature,
                # Any sequence will do here; JSON has lists.
                "stop_sequences": None if stop_sequences is None else list(stop_sequences),
                "metadata": metadata,
                "tools": None if tools is None else list(tools),
                "tool_choice": tool_choice,
            },
        )
        result: SamplingResult = await self._ask(request, types.SamplingResult.from_wire, timeout)
        return result

    async def list_roots(self, *, timeout: float | Unset | None = UNSET) -> "list[Root]":
        """Ask where the server may work; on every revision, see `elicit`.

        Args:
            timeout: Seconds, on a live request and in a task; None for no limit. Unless given,
                30, and in a task as long as it lives.

        Raises:
            McpError: The client cannot do it, or refused.
            RequestTimeout: It did not answer in time.
        """
        roots: list[Root] = await self._ask(InputRequest(ROOTS), read_roots, timeout)
        return roots

    @abc.abstractmethod
    async def step(self, function: Callable[..., object], *args: object) -> Any:
        """Run a side effect once, however often the handler is run again for its answers.

        Args:
            function: Sync or async; a sync one runs in a thread.
            args: Its arguments, JSON values; they tell apart steps of the same function.

        Returns:
            Its return value, as JSON: one value for all rounds.

        Raises:
            TypeError: Its return value, or an argument, is no JSON value.
        """

    @abc.abstractmethod
    async def start_task(self) -> None:
        """Answer the request with a task, and go on in it; for a tool with `starts_task=True`.

        Questions before it are asked in rounds of the request, questions after it in the task. When
        the task begins the handler is run again from the start, as after a question: it gets the
        answers that it has had, and `step` returns its earlier results. Where the client knows no
        tasks nothing happens, and the request stays open until the handler is done.

        Raises:
            LocalProtocolError: The tool begins no task by itself.
            McpError: There are too many tasks (-32603).
        """

    @property
    @abc.abstractmethod
    def attempt(self) -> int:
        """How often the handler of a task with `restartable=True` has been started: 1, 2 or 3.

        More than 1: the node that ran the task is gone, and has executed a part of it. Otherwise 1.
        """

    @abc.abstractmethod
    async def read_resource(self, uri: str) -> "ReadResult":
        """Read a resource of this server, as a client would; hidden ones too.

        Args:
            uri: Its URI.

        Raises:
            McpError: There is no such resource.
            TypeError: It asks by returning `InputRequired`; a tool that awaits `elicit` works.
        """

    @property
    @abc.abstractmethod
    def capability(self) -> "Capability":
        """The capability of this call: what it may call in turn.

        The capability of a request allows everything. A call within a request has the capability
        under which it was made.
        """

    @abc.abstractmethod
    async def open_capability(self, text: str) -> "Capability":
        """Open the text of a capability; each text once.

        Args:
            text: `str(capability)`.

        Returns:
            The capability. In this call it can be used any number of times.

        Raises:
            Denied: The text is forged, has expired, was opened before, or belongs to another
                server or principal.
        """

    @abc.abstractmethod
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        capability: "Capability | str | None" = None,
    ) -> "ToolResult":
        """Call another tool of the server, within this request.

        The scopes of the tool and the policies of the server hold, and so does its timeout. Its
        progress, its questions and its log messages belong to this request, and it is cancelled
        with it.

        Args:
            name: The name of the tool, hidden or not.
            arguments: The arguments, as a client would send them.
            capability: A capability, or the text of one; None for that of this call. The tool may
                call what both allow.

        Returns:
            The result. It has `is_error` if a policy or the capability denies the call, if it would
            be nested in a call of the same tool, or in more than `Limits.call_depth` calls.

        Raises:
            McpError: There is no such tool, or the tool raised it.
            InsufficientScope: The caller lacks scopes of the tool; let it pass.
            TypeError: The arguments are no mapping, or the capability is neither.
        """

    @property
    @abc.abstractmethod
    def input_responses(self) -> Mapping[str, Any]:
        """The answers to the questions of an `InputRequired` that this handler returned."""

    @property
    @abc.abstractmethod
    def request_state(self) -> str | None:
        """The state of an `InputRequired` that this handler returned."""

    @property
    @abc.abstractmethod
    def completion_arguments(self) -> Mapping[str, str]:
        """In a completion: the other arguments that are filled in already."""

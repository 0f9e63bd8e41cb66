"""`SessionMachine`: a session with a server, in which Hypothesis chooses each step."""

from collections.abc import Callable, Collection
from functools import lru_cache, partial
from json import dumps, loads
from typing import ClassVar, Final, NamedTuple, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from ..._errors import McpError
from ..._value import JSONObject
from ...client import SyncClient, Target
from ...jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from ...types import META_BROKEN_OUTPUT, ToolResult
from ._tools import arguments, invalid_arguments
from ._violation import Unsatisfiable

# The text of a result for an exception in a tool, which says no more to a client.
_CRASH: Final = "Tool execution failed"

_Drawn = TypeVar("_Drawn")
Calls = st.SearchStrategy["Call"]


class Call(NamedTuple):
    """A call of a tool.

    Attributes:
        name: The name of the tool.
        arguments: Its arguments.
    """

    name: str
    arguments: JSONObject


class SessionMachine(RuleBasedStateMachine):
    """A session with a server as a state machine of Hypothesis, which chooses the steps.

    Each example is a separate session. A step calls a tool with arguments that its schema allows,
    or forbids, reads a resource, gets a prompt, or lists them again. A subclass sets the server,
    and adds rules and invariants; its attribute `TestCase` is the test.

    A step fails if a tool crashes, breaks its output schema, accepts arguments that its schema
    forbids, or refuses valid ones (-32602), or if a request is answered with an internal error
    (-32603). A tool may answer with other errors, such as a `ToolError`; `check_call` can check
    more.

    Attributes:
        target: The server; see `connect`. A class is made anew for each session.
        version: The revision of the protocol; None: the newest that both sides speak.
        tools: The names of the tools that may be called with any arguments; None for all. Rules of
            a subclass may call others.
        client: The client of the session.
    """

    target: ClassVar[Target]
    version: ClassVar[str | None] = None
    tools: ClassVar[Collection[str] | None] = None
    client: SyncClient

    def __init__(self) -> None:
        super().__init__()
        self.client = self.connect().open()
        try:
            self._read_lists()
        except BaseException:
            self.client.close()
            raise

    def connect(self) -> SyncClient:
        """Return the client of a session, not open yet; a subclass may give it other options."""
        return SyncClient(self.target, version=self.version)

    def check_call(self, name: str, arguments: JSONObject, result: ToolResult) -> None:
        """Check the result of a tool that was called with arguments that fit its schema.

        Args:
            name: The name of the tool.
            arguments: The arguments.
            result: The result; also an error that the tool has raised for the model.

        Raises:
            AssertionError: It is wrong; by default nothing is.
        """

    def teardown(self) -> None:
        """End the session."""
        self.client.close()

    def _read_lists(self) -> None:
        offered = self.client.capabilities
        tools = self.client.list_tools() if offered.tools is not None else []
        wires = [
            dumps(each.to_wire(), sort_keys=True)
            for each in tools
            if self.tools is None or each.name in self.tools
        ]
        self._fitting = [each for wire in wires for each in _calls_of(wire, arguments)]
        self._refused = [each for wire in wires for each in _calls_of(wire, invalid_arguments)]
        resources = self.client.list_resources() if offered.resources is not None else []
        self._uris = [each.uri for each in resources]
        prompts = self.client.list_prompts() if offered.prompts is not None else []
        self._prompts = [_prompt_calls(each.to_wire()) for each in prompts]

    def _answer(self, ask: Callable[[], _Drawn]) -> _Drawn | None:
        """Return the answer to a request; None if the server refuses it."""
        try:
            return ask()
        except McpError as error:
            if error.code == INTERNAL_ERROR:
                raise
            return None

    @rule()
    def list_again(self) -> None:
        """List the tools, resources and prompts, which may have changed."""
        self._read_lists()

    @precondition(lambda self: self._fitting)
    @rule(call=st.runner().flatmap(lambda self: st.one_of(self._fitting)))
    def call_tool(self, call: Call) -> None:
        """Call a tool with arguments that its schema takes."""
        try:
            result = self.client.call_tool(*call)
        except McpError as error:
            names = {tool.name for tool in self.client.list_tools()}
            # A removed tool is no bug. Neither is an error with another code, or an error that
            # names the client capability that the tool needs.
            if call.name in names and error.code in (INVALID_PARAMS, INTERNAL_ERROR):
                raise
            self._read_lists()
        else:
            _check_failure(call, result)
            self.check_call(*call, result)

    @precondition(lambda self: self._refused)
    @rule(call=st.runner().flatmap(lambda self: st.one_of(self._refused)))
    def call_tool_wrongly(self, call: Call) -> None:
        """Call a tool with arguments that its schema forbids."""
        try:
            result = self.client.call_tool(*call)
        except McpError as error:
            if error.code != INVALID_PARAMS:
                raise
            return
        _check_failure(call, result)
        if not result.is_error:
            raise AssertionError(f"{call.name} takes {call.arguments}, which its schema forbids")

    @precondition(lambda self: self._uris)
    @rule(uri=st.runner().flatmap(lambda self: st.sampled_from(self._uris)))
    def read_resource(self, uri: str) -> None:
        """Read a resource that the server lists."""
        self._answer(lambda: self.client.read_resource(uri))

    @precondition(lambda self: self._prompts)
    @rule(call=st.runner().flatmap(lambda self: st.one_of(self._prompts)))
    def get_prompt(self, call: Call) -> None:
        """Get a prompt with any texts for its arguments."""
        self._answer(lambda: self.client.get_prompt(*call))


def _check_failure(call: Call, result: ToolResult) -> None:
    """Fail for an error that a tool never raises on purpose."""
    # A server that validates its results marks them; the client has validated others.
    if result.violations or META_BROKEN_OUTPUT in (result.meta or ()):
        said = "".join(f": {each}" for each in result.violations[:1])
        raise AssertionError(f"{call.name} broke its output schema with {call.arguments}{said}")
    if result.is_error and result.text == _CRASH:
        raise AssertionError(f"{call.name} crashed with {call.arguments}")


def _calls(name: str, arguments: st.SearchStrategy[JSONObject]) -> Calls:
    # Not `builds`: Hypothesis would vary the arguments of a failing example, and pass over each
    # variation with which the session goes on. It would then say that any others fail, too.
    return arguments.map(partial(Call, name))


# Each example has a session of its own, mostly with the same tools.
@lru_cache(maxsize=2_000)
def _calls_of(
    wire: str, make: Callable[[JSONObject], st.SearchStrategy[JSONObject]]
) -> list[Calls]:
    """Return the strategy for calls of a tool with some arguments; none if there are none."""
    tool = loads(wire)
    try:
        return [_calls(tool["name"], make(tool))]
    except Unsatisfiable:
        return []


def _prompt_calls(prompt: JSONObject) -> Calls:
    """Return the strategy for requests of a prompt."""
    required: dict[str, st.SearchStrategy[str]] = {}
    optional: dict[str, st.SearchStrategy[str]] = {}
    for each in prompt.get("arguments", ()):
        (required if each.get("required") else optional)[each["name"]] = st.text(max_size=20)
    return _calls(prompt["name"], st.fixed_dictionaries(required, optional=optional))

"""Policies: the class that users subclass, the call that it judges, and chains of them."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, get_args

from ..._class_body import BODY, BodyMeta, replacements, statement_frame
from ..._errors import DefinitionError, Problem
from ..._nearest import hint_at
from ..._source import problem_at
from ..._util import called, is_number
from ...types import Principal

if TYPE_CHECKING:
    from ...components import Context

#: The kinds of calls: of a tool, `prompts/get`, `resources/read`, and `completion/complete`.
CallKind = Literal["tool", "prompt", "resource", "completion"]
#: All kinds of calls.
KINDS: Final[frozenset[CallKind]] = frozenset(get_args(CallKind))
#: Seconds that a policy may take.
TIMEOUT: Final = 5.0
_OPTIONS: Final = ("kinds", "label", "loop", "timeout")


class PolicyCall(NamedTuple):
    """A call that a policy judges, before its arguments are checked.

    Attributes:
        kind: `tool`, `prompt`, `resource` or `completion`.
        name: The name of the tool or prompt, as it was sent; or the URI, as it is registered, or in
            its normal form (`noizu_mcp.uri.normalize`).
        arguments: The arguments as sent, not validated; read-only. Those of a completion are
            `argument` and `value`, those of a resource the decoded variables of its template.
        spec: The registration that was found; None if only an override of the server knows it.
        caller: The verified caller; None where nobody verifies it.
        client: The name of the client among those that share the server, such as its network
            address; None if it shares nothing. It proves nothing.
        transport: `stdio`, `http` or `memory`.
        chain: The tools whose calls this one is nested in, the outermost first.
    """

    kind: CallKind
    name: str
    arguments: Mapping[str, Any]
    spec: Any
    caller: Principal | None
    client: str | None
    transport: str
    chain: tuple[str, ...] = ()

    @property
    def tool(self) -> Any:
        """The registration of the tool; None for other kinds of calls."""
        return self.spec if self.kind == "tool" else None

    @property
    def depth(self) -> int:
        """The number of tools whose calls this one is nested in."""
        return len(self.chain)

    @property
    def registered(self) -> str | None:
        """The registered name, URI or URI template; None if only an override knows it.

        It takes few values, whatever clients send.
        """
        return None if self.spec is None else str(self.spec.definition[self.spec.key])


class Policy(metaclass=BodyMeta):
    """Decides whether a call may go on: subclass it, write `check`, list instances of it.

    Policies stand in `policies = […]` of a server. They are asked on every way to a handler: by a
    request, in a task, by an override, by a call of another handler. The component is found and its
    scopes hold by then; the arguments are not checked yet. The first policy that raises `Denied`
    ends the call. A policy that fails in another way, or takes too long, ends it as well.

    Attributes:
        kinds: The kinds of calls that it is asked about; all of them by default.
        timeout: Seconds that `check` may take; 5 by default.
        loop: `trio` or `asyncio`, where an async `check` runs; None for the loop of the server.
        label: Names it in audits; by default its class.

    Raises:
        DefinitionError: When the class statement runs: `check` has other parameters, or an
            attribute is wrong.
    """

    kinds: ClassVar[frozenset[CallKind]] = KINDS
    timeout: ClassVar[float] = TIMEOUT
    loop: ClassVar[str | None] = None
    label: str | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__()
        for name in options.keys() & set(_OPTIONS):
            setattr(cls, name, options.pop(name))
        faults = [(name, f"unknown option; {hint_at(name, _OPTIONS)}") for name in options]
        faults += _faults_of(cls)
        frame = statement_frame()
        problems = replacements(vars(cls)[BODY], cls.__name__, ("check", *_OPTIONS))
        problems += [problem_at(f"{cls.__name__}.{n}", text, frame) for n, text in faults]
        if problems:
            raise DefinitionError(problems)

    def check(self, call: PolicyCall, ctx: "Context") -> Awaitable[None] | None:
        """Let a call go on by returning, or refuse it.

        Write `async def` for a policy that waits. A plain `def` runs in the loop, and must not
        block.

        Args:
            call: The call.
            ctx: The request.

        Raises:
            Denied: The call is refused; the caller gets the reason.
        """
        # Not abstract: `ABCMeta` would hide the line of a class statement from its errors. A server
        # refuses a policy that does not override this.


def _faults_of(cls: type[Policy]) -> Iterable[tuple[str, str]]:
    """Yield the name and the text of each mistake in a subclass."""
    check = inspect.getattr_static(cls, "check")
    names = list(inspect.signature(check).parameters) if inspect.isfunction(check) else []
    yields = inspect.isgeneratorfunction(check) or inspect.isasyncgenfunction(check)
    if len(names) != 3 or yields:
        yield "check", "must be `async def check(self, call, ctx)`"
    kinds: Any = cls.kinds
    listed = isinstance(kinds, set | frozenset | list | tuple)
    if not listed or not all(isinstance(kind, str) and kind in KINDS for kind in kinds):
        yield "kinds", f"must be a set of {', '.join(sorted(KINDS))}, got {kinds!r}"
    seconds: Any = cls.timeout
    if not is_number(seconds) or seconds <= 0:
        yield "timeout", f"must be seconds above 0, got {called(seconds)}"
    if cls.loop not in (None, "trio", "asyncio"):
        yield "loop", f"must be 'trio' or 'asyncio', got {cls.loop!r}"


class Guard(NamedTuple):
    """One policy of a chain, ready to be asked.

    Attributes:
        label: Names it in audits.
        check: Judges a call.
        waits: True if `check` is a coroutine function.
        timeout: Seconds that it may take.
    """

    label: str
    check: Callable[[PolicyCall, Any], Any]
    waits: bool
    timeout: float


class Chain(NamedTuple):
    """The policies for one kind of calls.

    Attributes:
        guards: The policies, in order.
        waits: True if any of them may wait.
    """

    guards: tuple[Guard, ...]
    waits: bool


def check_policies(policies: Iterable[Any]) -> list[Problem]:
    """Check the `policies` of a server."""
    faults = enumerate(map(_fault_of, policies))
    return [Problem(f"policies[{n}]", fault) for n, fault in faults if fault is not None]


def _fault_of(policy: Any) -> str | None:
    if isinstance(policy, type) and issubclass(policy, Policy):
        return f"must be an instance: write {policy.__name__}(…)"
    if not isinstance(policy, Policy):
        return f"must be a Policy, got {called(policy)}"
    if type(policy).check is Policy.check:
        return f"{type(policy).__name__} has no check; write `async def check(self, call, ctx)`"
    return None


def make_chains(
    policies: Sequence[Policy], bind: Callable[[Policy], Callable[..., Any]]
) -> dict[str, Chain]:
    """Make the chain for each kind of calls that any policy is asked about.

    Args:
        policies: The policies.
        bind: Gives the `check` of a policy as a function for trio.

    Raises:
        DefinitionError: One is not a policy.
    """
    if problems := check_policies(policies):
        raise DefinitionError(problems)
    chains: dict[str, Chain] = {}
    ready = [(policy, _guard_of(policy, bind(policy))) for policy in policies]
    for kind in get_args(CallKind):
        guards = tuple(guard for policy, guard in ready if kind in policy.kinds)
        if guards:
            chains[kind] = Chain(guards, any(guard.waits for guard in guards))
    return chains


def _guard_of(policy: Policy, check: Callable[..., Any]) -> Guard:
    label = policy.label or type(policy).__name__
    return Guard(label, check, inspect.iscoroutinefunction(check), policy.timeout)

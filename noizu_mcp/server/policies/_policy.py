"""Policies: the class that users subclass, the call that is checked, and chains of policies."""

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
#: Seconds within which a policy must decide.
TIMEOUT: Final = 5.0
_OPTIONS: Final = ("kinds", "label", "loop", "timeout")


class PolicyCall(NamedTuple):
    """A call that a policy checks, before its arguments are validated.

    Attributes:
        kind: `tool`, `prompt`, `resource` or `completion`.
        name: The name of the tool or prompt as sent; or the URI as registered or in normal form
            (`noizu_mcp.uri.normalize`).
        arguments: The arguments as sent, not validated; read-only. For a completion, `argument` and
            `value`; for a resource, the decoded variables of its template.
        spec: The registration; None if only an override of the server knows it.
        caller: The verified caller; None without authentication.
        client: The name of the client among the clients of the server, such as its network address;
            None if there is only one. It is not verified.
        transport: `stdio`, `http` or `memory`.
        chain: The tools whose calls this one is nested in, outermost first.
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

        It has few possible values, whatever clients send.
        """
        return None if self.spec is None else str(self.spec.definition[self.spec.key])


class Policy(metaclass=BodyMeta):
    """Decides whether a call is allowed. Subclass it, write `check`, and list instances of it.

    Policies are listed in `policies = […]` of a server. They are checked on every way to a handler:
    a request, a task, an override, a call of another handler. By then the component is known and
    its scopes are checked; the arguments are not validated yet. The first policy that raises
    `Denied` ends the call. A policy that raises another exception, or takes too long, ends it as
    well.

    Attributes:
        kinds: The kinds of calls that it checks; all by default.
        timeout: Maximum seconds that `check` may take; 5 by default.
        loop: `trio` or `asyncio`, where an async `check` runs; None for the server's loop.
        label: Its name in audits; the class name by default.

    Raises:
        DefinitionError: Raised by the class statement: `check` has other parameters, or an
            attribute is not valid.
    """

    kinds: ClassVar[frozenset[CallKind]] = KINDS
    timeout: ClassVar[float] = TIMEOUT
    loop: ClassVar[str | None] = None
    label: str | None = None

    def __init_subclass__(cls, **options: object) -> None:
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
        """Return to allow the call, or raise `Denied`.

        Write `async def` for a policy that waits. A plain `def` runs in the loop and must not
        block.

        Args:
            call: The call.
            ctx: The request.

        Raises:
            Denied: The call is denied; the caller gets the reason.
        """
        # Not abstract: with `ABCMeta` errors would lose the line of the class statement. A server
        # refuses a policy that does not override this.


def _faults_of(cls: type[Policy]) -> Iterable[tuple[str, str]]:
    """Yield the name and the text of each error in a subclass."""
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


class SharedPolicy(Policy):
    """A policy that asks the backend where the server has several nodes.

    Its `check` is a plain method. It returns a coroutine only then.
    """


class BoundPolicy(NamedTuple):
    """One policy of a chain, bound to a loop.

    Attributes:
        label: Its name in audits.
        check: Checks a call.
        waits: True if `check` is a coroutine function.
        is_shared: True if `check` may return a coroutine where the server has several nodes.
        timeout: Maximum seconds that it may take.
    """

    label: str
    check: Callable[[PolicyCall, Any], Any]
    waits: bool
    is_shared: bool
    timeout: float


class Chain(NamedTuple):
    """The policies for one kind of call.

    Attributes:
        guards: The policies, in order.
        waits: True if a policy of the chain may wait.
        is_shared: True if a policy of the chain may wait where the server has several nodes.
    """

    guards: tuple[BoundPolicy, ...]
    waits: bool
    is_shared: bool


def check_policies(policies: Iterable[Any]) -> list[Problem]:
    """Check the `policies` of a server."""
    faults = enumerate(map(_fault_of, policies))
    return [Problem(f"policies[{n}]", fault) for n, fault in faults if fault is not None]


def _fault_of(policy: object) -> str | None:
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
    """Make the chain for each kind of call that some policy checks.

    Args:
        policies: The policies.
        bind: Returns the `check` of a policy as a function for trio.

    Raises:
        DefinitionError: An item is not a policy.
    """
    if problems := check_policies(policies):
        raise DefinitionError(problems)
    chains: dict[str, Chain] = {}
    ready = [(policy, _guard_of(policy, bind(policy))) for policy in policies]
    for kind in get_args(CallKind):
        guards = tuple(guard for policy, guard in ready if kind in policy.kinds)
        if guards:
            waits = any(guard.waits for guard in guards)
            chains[kind] = Chain(guards, waits, any(guard.is_shared for guard in guards))
    return chains


def _guard_of(policy: Policy, check: Callable[..., Any]) -> BoundPolicy:
    label = policy.label or type(policy).__name__
    waits = inspect.iscoroutinefunction(check)
    return BoundPolicy(label, check, waits, isinstance(policy, SharedPolicy), policy.timeout)

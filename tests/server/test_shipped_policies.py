"""The shipped policies: by name, by rate, by time of day."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import Prompt, Resource, Server, Toolkit, connect, mcp
from noizu_mcp.policies import AllowTools, Denied, DenyTools, PolicyCall, RateLimit, TimeWindow
from noizu_mcp.types import Principal

from ..kit.servers import Clock


def call_of(name="echo", *, kind="tool", caller=None, client=None, spec=None):
    principal = None if caller is None else Principal(subject=caller)
    return PolicyCall(kind, name, {}, spec, principal, client, "http")


def refusal(policy, call=None):
    """Return the reason of a refusal, or None if the call is allowed."""
    try:
        policy.check(call or call_of(), None)
    except Denied as denied:
        return denied.reason
    return None


# Patterns


_TEXTS = st.text("ab*.[", min_size=1, max_size=8)


@given(_TEXTS, st.text("ab.[", max_size=10))
def test_a_star_stands_for_any_text_and_nothing_else_does(pattern, name):
    """A pattern matches the same names as the equivalent regular expression."""
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL)
    is_allowed = refusal(AllowTools(pattern), call_of(name)) is None
    assert is_allowed == (expected is not None)


def test_a_long_name_costs_no_more_than_it_is_long():
    """The work for many stars is that of a few searches."""
    assert refusal(AllowTools("*a" * 50 + "*b"), call_of("a" * 100_000)) is not None


@pytest.mark.parametrize("kind", [DenyTools, AllowTools])
@pytest.mark.parametrize("patterns", [(), ("",), (3,), ("a", None)])
def test_wrong_patterns_are_refused(kind, patterns):
    """A pattern must be a string that is not empty."""
    with pytest.raises(ValueError, match="pattern such as 'skill:\\*'"):
        kind(*patterns)


# By name


def test_tools_are_denied_by_name():
    """The reason names the pattern; patterns are case-sensitive."""
    policy = DenyTools("skill:danger*", "shell")
    assert refusal(policy, call_of("skill:dangerous")) == (
        "tool 'skill:dangerous' is blocked by the pattern 'skill:danger*'"
    )
    assert refusal(policy, call_of("shell")) == "tool 'shell' is blocked by the pattern 'shell'"
    for name in ("skill:Danger", "Shell", "shells", "skill:"):
        assert refusal(policy, call_of(name)) is None
    assert repr(policy) == "DenyTools('skill:danger*', 'shell')"


def test_other_tools_are_denied_where_some_are_allowed():
    """With a list of allowed tools the reason does not name the patterns."""
    policy = AllowTools("skill:*", "echo")
    assert refusal(policy, call_of("shell")) == "tool 'shell' is not among the allowed tools"
    assert refusal(policy, call_of("skill:")) is None
    assert refusal(policy, call_of("echo")) is None


class Kit(Toolkit):
    @mcp
    async def echo(self) -> str:
        return "hi"


class Page(Resource, uri="page://one"):
    async def read(self, uri, ctx):
        return "one"


class Greet(Prompt):
    async def get(self, args, ctx):
        return []


async def test_names_of_tools_concern_tools_only():
    """Rules for tools apply neither to prompts nor to resources."""

    class Narrow(Server, name="narrow", version="1"):
        tools = [Kit]
        resources = [Page]
        prompts = [Greet]
        policies = [AllowTools("nothing"), DenyTools("*")]

    async with connect(Narrow) as client:
        assert (await client.call_tool("echo")).is_error
        await client.read_resource("page://one")
        await client.get_prompt("greet")


# By rate


def test_a_bucket_gives_so_many_calls_at_once_and_fills_up_evenly():
    """A refused call takes no token, and its reason has the time until the next one."""
    clock = Clock(100.0)
    policy = RateLimit(3, per=60, clock=clock)
    assert [refusal(policy) for _ in range(3)] == [None] * 3
    for _ in range(5):
        assert refusal(policy) == "rate limit exceeded: max 3/60s; try again in 20 s"
    clock.now += 19
    assert refusal(policy) == "rate limit exceeded: max 3/60s; try again in 1 s"
    clock.now += 1
    assert refusal(policy) is None
    assert refusal(policy) is not None
    clock.now += 600
    assert [refusal(policy) for _ in range(4)][2:] == [
        None,
        "rate limit exceeded: max 3/60s; try again in 20 s",
    ]
    assert repr(policy) == "RateLimit(3, per=60, key='principal')"


@given(
    st.integers(1, 20),
    st.sampled_from([0.5, 1.0, 7.0, 60.0]),
    st.lists(st.floats(0, 30), max_size=60),
)
def test_no_period_has_more_calls_than_a_full_bucket_and_its_share(n, per, pauses):
    """The bound holds for any pauses, and no call within the rate is refused."""
    clock = Clock()
    policy = RateLimit(n, per, clock=clock)
    passed = []
    for pause in pauses:
        clock.now += pause
        if refusal(policy) is None:
            passed.append(clock.now)
        else:
            assert sum(clock.now - per < at for at in passed) >= 1
    for index, begin in enumerate(passed):
        for later, end in enumerate(passed[index:]):
            assert later + 1 <= n + (end - begin) * n / per + 1e-6


class Spec:
    key = "name"

    def __init__(self, name):
        self.definition = {"name": name}


@pytest.mark.parametrize(("key", "passed"), [("principal", "ab"), ("tool", "ax"), ("both", "abxy")])
def test_the_key_says_whose_bucket_it_is(key, passed):
    """A bucket belongs to a principal, a tool, or a principal and a tool."""
    policy = RateLimit(1, per=60, key=key, clock=Clock())
    one, two = Spec("one"), Spec("two")
    calls = {
        "a": call_of("one", caller="ada", spec=one),
        "b": call_of("one", caller="bob", spec=one),
        "x": call_of("two", caller="ada", spec=two),
        "y": call_of("two", caller="bob", spec=two),
    }
    found = "".join(name for name, call in calls.items() if refusal(policy, call) is None)
    assert found == passed
    assert all(refusal(policy, call) for call in calls.values())


def test_names_that_clients_make_up_share_a_bucket():
    """Names that no tool has share a bucket; else each would have a full one."""
    policy = RateLimit(1, per=60, key="tool", clock=Clock())
    assert refusal(policy, call_of("made-up-1")) is None
    assert refusal(policy, call_of("made-up-2")) is not None


def test_without_authentication_the_client_counts():
    """Without authentication the key is the network address; a pipe has one client."""
    policy = RateLimit(1, per=60, clock=Clock())
    for client in ("192.0.2.1", "192.0.2.2", None):
        assert refusal(policy, call_of(client=client)) is None
        assert refusal(policy, call_of(client=client)) is not None


def test_the_buckets_are_bounded():
    """If 10,000 buckets are in use, new callers are refused; full buckets are dropped."""
    clock = Clock()
    policy = RateLimit(2, per=60, clock=clock)
    for name in ("a", *range(9999)):
        assert refusal(policy, call_of(caller=str(name))) is None
    assert refusal(policy, call_of(caller="d")) == (
        "rate limit exceeded: max 2/60s; try again in 30 s"
    )
    assert refusal(policy, call_of(caller="a")) is None  # it has its bucket
    clock.now += 30
    assert refusal(policy, call_of(caller="d")) is None
    assert refusal(policy, call_of(caller="e")) is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, 60), "n must be a whole number of calls above 0, got 0"),
        ((True, 60), "n must be a whole number of calls above 0, got True"),
        ((1.5, 60), "n must be a whole number of calls above 0, got 1.5"),
        ((1, 0), "per must be seconds above 0, got 0"),
        ((1, float("inf")), "per must be seconds above 0, got inf"),
        ((1, "60"), "per must be seconds above 0, got '60'"),
        ((1, 60, "user"), "key must be one of principal, tool, both, got 'user'"),
    ],
)
def test_a_wrong_rate_is_refused(arguments, text):
    """The error says what the rate must be."""
    with pytest.raises(ValueError, match=re.escape(text)):
        RateLimit(*arguments)


async def test_a_rate_counts_tools_prompts_and_resources():
    """Tools, prompts and resources share a bucket; completions are not counted."""

    class Limited(Server, name="limited", version="1"):
        tools = [Kit]
        resources = [Page]
        prompts = [Greet]
        policies = [RateLimit(3, per=60, clock=Clock())]

    async with connect(Limited) as client:
        await client.call_tool("echo")
        await client.read_resource("page://one")
        await client.get_prompt("greet")
        assert "rate limit exceeded: max 3/60s" in (await client.call_tool("echo")).text
    assert RateLimit(1, 1).kinds == {"tool", "prompt", "resource"}


# By time of day


def at(text):
    return Clock(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("start", "end", "time", "allowed"),
    [
        ("08:00", "18:00", "07:59:59", False),
        ("08:00", "18:00", "08:00:00", True),
        ("8:00", "18:00", "17:59:59", True),
        ("08:00", "18:00", "18:00:00", False),
        ("22:30", "06:00", "23:00:00", True),
        ("22:30", "06:00", "05:59:00", True),
        ("22:30", "06:00", "06:00:00", False),
        ("22:30", "06:00", "22:29:00", False),
        ("00:00", "24:00", "23:59:59", True),
        ("12:00", "24:00", "23:59:59", True),
        ("12:00", "24:00", "00:00:00", False),
    ],
)
def test_calls_are_allowed_within_the_hours(start, end, time, allowed):
    """The end is exclusive; the hours may cross midnight."""
    policy = TimeWindow(start, end, clock=at(f"2026-07-28 {time}"))
    expected = f"outside of the allowed hours, {start} to {end} UTC"
    assert refusal(policy) == (None if allowed else expected)


def test_each_minute_is_judged_by_itself():
    """Each call is judged by its own minute, also if the clock goes back."""
    clock = Clock(8 * 3600 - 1)
    policy = TimeWindow("08:00", "08:01", clock=clock)
    allowed = []
    for clock.now in (8 * 3600 - 1, 8 * 3600, 8 * 3600 + 59.9, 8 * 3600 + 60, 8 * 3600):
        allowed.append(refusal(policy) is None)
    assert allowed == [False, True, True, False, True]


def test_the_hours_follow_a_time_zone():
    """The hours follow the time zone in summer and in winter."""
    summer = TimeWindow("08:00", "18:00", "Europe/Berlin", clock=at("2026-07-28 06:30"))
    winter = TimeWindow("08:00", "18:00", "Europe/Berlin", clock=at("2026-01-28 06:30"))
    assert refusal(summer) is None
    assert refusal(winter) == "outside of the allowed hours, 08:00 to 18:00 Europe/Berlin"


@pytest.mark.parametrize("time", ["8", "25:00", "08:60", "24:01", "8am", 8, "08:00:00"])
def test_a_wrong_time_is_refused(time):
    """The error says how to write a time."""
    with pytest.raises(ValueError, match="is no time of day; write it as '08:00'"):
        TimeWindow("07:00", time)


def test_a_wrong_window_is_refused():
    """An empty window and an unknown time zone are refused."""
    with pytest.raises(ValueError, match="08:00 to 8:00 is no time: the end must differ"):
        TimeWindow("08:00", "8:00")
    for zone in ("Europe/Atlantis", "", "../etc/passwd", 3):
        with pytest.raises(ValueError, match="is no time zone of this system"):
            TimeWindow("08:00", "18:00", zone)

"""Capabilities: they are only narrowed, and a text opens once, for its owner, until it expires."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.policies import Denied
from noizu_mcp.server import Sealer
from noizu_mcp.server.policies import _capability
from noizu_mcp.server.policies._capability import CapabilityIssuer
from noizu_mcp.server.providers._mounted_contexts import MountedCapability
from noizu_mcp.types import Principal

from ..kit.servers import Clock

ADA, BOB = Principal(subject="ada"), Principal(subject="bob")
KEYS = ["correct horse battery staple no. 1", "correct horse battery staple no. 2"]
NOT_VALID = "the capability is not valid"


def issuer(name="house", keys=KEYS, clock=None, ttl=3600.0, purpose=b"capabilities"):
    clock = clock or Clock(1_000_000.0)
    return CapabilityIssuer(name, Sealer(keys, ttl, purpose=purpose, clock=clock), ttl, clock)


def opened(of, text, caller=ADA):
    """Open a text, as a call does."""
    id_, capability = of.read(text, caller)
    of.redeem(id_, capability)
    return capability


# Attenuation

NAMES = ["skill:a", "skill:b", "shell", "echo"]
PATTERNS = ["*", "skill:*", "skill:a", "shell", "*e*", "nothing"]
VALUES = [True, 1, 1.5, "1", None, [1], {"a": 1}]
STEPS = st.fixed_dictionaries(
    {},
    optional={
        "tools": st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3),
        "expires_in": st.floats(0, 100),
        "depth": st.integers(0, 4),
        "arguments": st.dictionaries(st.sampled_from("xy"), st.sampled_from(VALUES), max_size=2),
    },
)
CALLS = st.tuples(
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from("xyz"), st.sampled_from(VALUES), max_size=3),
    st.floats(0, 120),
)


@given(st.lists(STEPS, max_size=6), st.lists(CALLS, min_size=1, max_size=6), st.booleans())
def test_no_sequence_of_attenuations_widens(steps, calls, written):
    """A derived capability allows only what each one before it allows, in memory and as text."""
    clock = Clock(1_000_000.0)
    of = issuer(clock=clock)
    chain = [of.issue(ADA)]
    for step in steps:
        narrower = chain[-1].attenuate(**step)
        # The text of an expired capability would not open.
        alive = narrower.expires_at is None or narrower.expires_at > clock.now
        chain.append(opened(of, str(narrower)) if written and alive else narrower)
        chain.append(chain[-1].inner())
    start = clock.now
    for name, arguments, later in calls:
        clock.now = start + later
        allowed = [each.refusal(name, arguments) is None for each in chain]
        assert allowed == sorted(allowed, reverse=True)
        assert allowed[0]


@given(STEPS, STEPS, st.lists(CALLS, min_size=1, max_size=6))
def test_two_capabilities_together_allow_what_both_allow(one, other, calls):
    """The combination of two capabilities is the same in either order."""
    clock = Clock(1_000_000.0)
    root = issuer(clock=clock).issue(ADA)
    a, b = root.attenuate(**one), root.attenuate(**other)
    start = clock.now
    for name, arguments, later in calls:
        clock.now = start + later
        both = a.refusal(name, arguments) is None and b.refusal(name, arguments) is None
        for joined in (a.joined(b), b.joined(a)):
            assert (joined.refusal(name, arguments) is None) == both


def test_each_condition_has_its_reason():
    """Each refused condition has its own reason, so that the caller can tell what to change."""
    clock = Clock(1_000_000.0)
    root = issuer(clock=clock).issue(ADA)
    assert root.refusal("any", {}) is None
    reasons = {
        "the capability does not allow tool 'shell'": root.attenuate(tools=["skill:*"]),
        "the capability allows no deeper calls": root.attenuate(depth=0),
        "the capability has expired": root.attenuate(expires_in=0),
        "the capability demands another value of the argument 'dry'": root.attenuate(
            arguments={"dry": True}
        ),
    }
    for reason, capability in reasons.items():
        denied = capability.refusal("shell", {"dry": 1})
        assert denied is not None
        assert denied.reason == reason
    assert root.attenuate(arguments={"dry": True}).refusal("x", {"dry": True}) is None
    nested = root.attenuate(arguments={"a": {"b": 1, "c": 2}})
    assert nested.refusal("x", {"a": {"c": 2, "b": 1}}) is None


def test_each_level_of_calls_takes_one_of_the_depth():
    """Each level of calls decrements the depth, down to 0; without a limit it stays `None`."""
    root = issuer().issue(ADA)
    two = root.attenuate(depth=2)
    assert [two.depth, two.inner().depth, two.inner().inner().depth] == [2, 1, 0]
    assert two.inner().inner().inner().depth == 0
    assert root.inner().depth is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"depth": -1}, "depth must be a whole number of 0 or more, got -1"),
        ({"depth": True}, "depth must be a whole number of 0 or more, got True"),
        ({"expires_in": -1}, "expires_in must be seconds, 0 or more, got -1"),
        ({"expires_in": float("nan")}, "expires_in must be seconds, 0 or more, got nan"),
        ({"expires_in": True}, "expires_in must be seconds, 0 or more, got True"),
        ({"expires_in": "60"}, "expires_in must be seconds, 0 or more, got '60'"),
        ({"tools": []}, "needs the name of a tool"),
        ({"tools": [""]}, "'' is no name of a tool"),
    ],
)
def test_wrong_conditions_are_refused(options, text):
    """A wrong condition is refused, and never treated as no condition."""
    with pytest.raises(ValueError, match=re.escape(text)):
        issuer().issue(ADA).attenuate(**options)


def test_arguments_are_a_mapping():
    """A list of argument names is refused, since it would demand no values."""
    with pytest.raises(TypeError, match=re.escape("arguments must be a mapping, got ['dry']")):
        issuer().issue(ADA).attenuate(arguments=["dry"])


def test_a_text_of_many_conditions_has_a_bound():
    """A condition that is added twice is stored once."""
    root = issuer().issue(ADA)
    same = root
    for _ in range(1000):
        same = same.attenuate(tools=["skill:*"], arguments={"dry": True})
    assert len(str(same)) < 1000
    with pytest.raises(ValueError, match="may have 16384 characters"):
        str(root.attenuate(tools=["x" * 20_000]))


def test_a_capability_shows_no_secret():
    """The `repr` of a capability does not contain its text, so that logs do not, either."""
    root = issuer().issue(ADA)
    assert repr(root.attenuate(depth=2)) == f"<Capability of {ADA.key}, depth 2>"
    assert str(root) not in repr(root)
    assert (root.server, root.principal) == ("house", ADA.key)


# Texts


@given(STEPS)
def test_a_text_opens_to_an_equal_capability(step):
    """The opened capability expires with its text at the latest."""
    clock = Clock(1_000_000.0)
    of = issuer(clock=clock, ttl=50)
    made = of.issue(ADA).attenuate(**{**step, "expires_in": 60})
    again = opened(of, str(made))
    assert (again.tools, again.depth, again.wanted) == (made.tools, made.depth, made.wanted)
    assert again.expires_at == clock.now + 50


def refused(of, text, caller=ADA):
    with pytest.raises(Denied) as raised:
        opened(of, text, caller)
    return raised.value.reason == NOT_VALID


@given(st.data())
def test_no_forged_text_opens(data):
    """A text with one changed bit, a part of one and an invented one get the same refusal."""
    of = issuer()
    text = str(of.issue(ADA))
    raw = bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    changed = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    assert refused(of, changed)
    cut = data.draw(st.integers(0, len(text) - 1))
    assert refused(of, text[:cut])
    assert refused(of, data.draw(st.text(max_size=100)))
    assert refused(of, "x" * 20_000)
    opened(of, text)


def test_a_text_of_another_owner_does_not_open():
    """The text does not open for another principal, server, key ring or purpose."""
    of = issuer()
    text = str(of.issue(ADA))
    assert refused(of, text, BOB)
    assert refused(of, text, None)
    assert refused(issuer("barn"), text)
    assert refused(issuer(keys=["another secret of 32 characters, ok"]), text)
    assert refused(issuer(purpose=b"requestState"), text)
    opened(of, text)
    nobody = str(of.issue(None))
    assert refused(of, nobody, ADA)
    opened(of, nobody, None)


def test_a_text_opens_once():
    """Opening a text again is a replay; another text of the same capability opens."""
    of = issuer()
    capability = of.issue(ADA)
    text, other = str(capability), str(capability)
    opened(of, text)
    assert refused(of, text)
    opened(of, other)


def test_a_text_has_an_end():
    """A text expires with its capability or its state; writing it again does not change that."""
    clock = Clock(1_000_000.0)
    of = issuer(clock=clock, ttl=100)
    short = str(of.issue(ADA).attenuate(expires_in=10))
    long, again = str(of.issue(ADA).attenuate(expires_in=1000)), str(of.issue(ADA))
    clock.now += 10
    assert refused(of, short)
    clock.now += 80
    again = str(opened(of, again))
    clock.now += 10
    assert refused(of, again)
    assert refused(of, long)


def test_nodes_share_keys_and_change_them():
    """A key that only opens still opens the texts that were sealed with it."""
    text = str(issuer(keys=KEYS[:1]).issue(ADA))
    opened(issuer(keys=KEYS[::-1]), text)
    assert refused(issuer(keys=KEYS[1:]), text)


def test_objects_of_another_owner_are_refused():
    """A capability that was kept from another request, of another caller, is refused."""
    root = issuer().issue(ADA)
    for other in (issuer().issue(BOB), issuer("barn").issue(ADA)):
        with pytest.raises(Denied, match=NOT_VALID):
            root.joined(other)


def test_the_texts_that_were_opened_are_bounded(monkeypatch):
    """No principal can fill the table of opened texts; expired entries make room."""
    monkeypatch.setattr(_capability, "MAX_OPENED", 8)
    clock = Clock(1_000_000.0)
    of = issuer(clock=clock, ttl=100)
    for _ in range(2):
        opened(of, str(of.issue(ADA)))
    assert refused(of, str(of.issue(ADA)))
    for _ in range(6):
        opened(of, str(of.issue(None)), None)
    assert refused(of, str(of.issue(None)), None)
    assert refused(of, str(of.issue(BOB)), BOB)
    clock.now += 100
    opened(of, str(of.issue(BOB)), BOB)
    opened(of, str(of.issue(ADA)))


@pytest.mark.parametrize("name", ["tools", "depth", "expires_at", "principal", "wanted", "other"])
@pytest.mark.parametrize("mounted", [False, True])
def test_a_capability_cannot_be_changed(name, mounted):
    """A handler cannot assign to a capability, since that could widen it."""
    capability = issuer().issue(ADA).attenuate(tools=["a"])
    if mounted:
        capability = MountedCapability(capability, lambda name, _: name)
    with pytest.raises(AttributeError, match="cannot be changed; attenuate makes a narrower one"):
        setattr(capability, name, None)
    with pytest.raises(AttributeError, match="cannot be deleted"):
        delattr(capability, name)
    assert capability.tools == (("a",),)

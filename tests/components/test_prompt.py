"""Prompts: definitions, arguments, and results."""

import enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp import McpError, ProtocolError
from noizu_mcp.components import (
    Context,
    Prompt,
    PromptSpec,
    expand,
    kind_of,
    prompt,
    to_prompt_result,
)
from noizu_mcp.schema import Schema, argument, field
from noizu_mcp.schema import fields as f
from noizu_mcp.types import META_VIOLATIONS, Content, Icon, PromptMessage, PromptResult


def spec_of(item: Any) -> PromptSpec:
    (spec,) = expand([item], "prompts")
    return spec


def refused(spec: PromptSpec, arguments: Any) -> McpError:
    with pytest.raises(McpError) as caught:
        spec.prepare(arguments)
    assert caught.value.code == -32602
    return caught.value


async def languages(prefix: str, ctx: Any) -> list[str]:
    return [f"{prefix} {ctx}"]


class CodeReview(Prompt):
    """Review code for quality issues.

    Args:
        language: What it is written in.
    """

    class Arguments(Schema):
        code: str = argument(description="The code to review")
        style: str | None = argument(default=None, complete=["strict", "friendly", "Strict"])
        language: str = argument(default="python", complete=languages)

    async def get(self, args: Arguments, ctx: Context) -> Any:
        """Get it.

        Args:
            args: What was filled in.
            ctx: The request.
        """
        return [
            PromptMessage.user(f"Review this code (style: {args.style or 'strict'}):"),
            PromptMessage.user(args.code),
        ]


class Simple(Prompt, name="simple", description="D", title="T", icons=[Icon("data:,")]):
    meta = {"k": 1}
    timeout = None
    visible = False

    def get(self) -> str:
        return "This is a simple prompt for testing."


class Typed(Prompt):
    class Arguments(Schema):
        count: int = argument()
        ratio: float = 1.0
        loud: bool = False
        mode: Literal["a", "b"] = "a"
        level: Literal[1, 2, "1"] = 2
        maybe: int | None = None
        either: int | bool = 0
        text: int | str = ""
        mixed: int | list[int] = 0
        anything: Any = None

    def get(self, args: Arguments) -> Any:
        return args


class AsData(Prompt):
    """Arguments that are fields as data."""

    arguments = {"code": f.string(required=True, description="The code"), "count": int}

    def get(self, args: Any) -> str:
        return f"{args.code} {args.count}"


class Inheriting(AsData, abstract=True):
    """A base may leave them to others."""


class Nearer(Inheriting, name="nearer"):
    class Arguments(Schema):
        other: str

    def get(self, args: Any) -> str:
        return "other"


class Raw(Prompt, arguments={"type": "object", "properties": {"n": {"type": "integer"}}}):
    def get(self, args: Any) -> str:
        return f"{args}"


def test_arguments_as_data() -> None:
    """`arguments = {…}` has the forms of a tool's `input = {…}`; the closest form is used."""
    spec = spec_of(AsData)
    assert spec.definition["arguments"] == [
        {"name": "code", "description": "The code", "required": True},
        {"name": "count"},
    ]
    assert spec.invoke(spec.prepare({"code": "x", "count": "3"}), None) == "x 3"
    assert "expected integer" in refused(spec, {"code": "x", "count": "y"}).message
    assert spec_of(Nearer).arguments == ("other",)
    spec = spec_of(Raw)
    assert spec.invoke(spec.prepare({"n": "3"}), None) == "{'n': 3}"


async def test_a_prompt() -> None:
    """A prompt has a definition, arguments, and completions."""
    spec = spec_of(CodeReview)
    assert (
        spec.definition
        == CodeReview.definition()
        == {
            "name": "code_review",
            "description": "Review code for quality issues.",
            "arguments": [
                {"name": "code", "description": "The code to review", "required": True},
                {"name": "style"},
                {"name": "language", "description": "What it is written in."},
            ],
        }
    )
    assert (spec.name, spec.description) == ("code_review", "Review code for quality issues.")
    assert (spec.arguments, spec.required) == (("code", "style", "language"), ("code",))
    assert (spec.mode, spec.takes_context, spec.hidden) == ("async", True, False)
    assert repr(spec.timeout) == "UNSET"
    args = spec.prepare({"code": "x = 1", "unknown": "dropped"})
    assert args == CodeReview.Arguments(code="x = 1")
    result = to_prompt_result(spec, await spec.invoke(args, "ctx"))
    assert [message.content.text for message in result.messages] == [
        "Review this code (style: strict):",
        "x = 1",
    ]
    assert spec.complete("style") == ("strict", "friendly", "Strict")
    source: Any = spec.complete("language")
    assert (source.mode, await source.invoke("p", "ctx")) == ("async", ["p ctx"])
    assert (spec.complete("code"), spec.complete("unknown")) == (None, None)
    assert repr(spec) == f"PromptSpec('code_review', {__name__}.CodeReview)"
    assert kind_of(CodeReview).feature == "prompts"


def test_a_prompt_without_arguments() -> None:
    """The definition omits the key; a handler that asks for arguments gets what was sent."""
    spec = spec_of(Simple())
    assert spec.definition == {
        "name": "simple",
        "title": "T",
        "description": "D",
        "icons": [{"src": "data:,"}],
        "_meta": {"k": 1},
    }
    assert (spec.hidden, spec.timeout, spec.mode) == (True, None, "thread")
    assert (spec.arguments, spec.required, spec.takes_context) == ((), (), False)
    assert spec.prepare({"any": 1}) == {"any": 1}
    assert spec.invoke({}, None) == "This is a simple prompt for testing."

    class Empty(Prompt):
        class Arguments(Schema):
            pass

        def get(self, args: Any) -> Any:
            return args

    assert Empty.definition() == {"name": "empty"}
    assert isinstance(spec_of(Empty).prepare({"any": 1}), Empty.Arguments)


def test_missing_arguments_are_named() -> None:
    """All are named, in order of declaration; null is not missing."""

    class Two(Prompt):
        class Arguments(Schema):
            code: str
            style: str = "x"
            x: str

        def get(self, args: Any) -> None: ...

    spec = spec_of(prompt(Two, name="alias"))
    assert refused(spec, {}).message == "Missing required arguments: code, x"
    assert refused(spec, {"code": ""}).message == "Missing required arguments: x"
    error = refused(spec, {"code": None, "x": 3})
    assert error.message == (
        "Invalid arguments for prompt alias:\n"
        "/code: expected string, got null\n"
        "/x: expected string, got integer 3"
    )
    assert [each["path"] for each in error.data[META_VIOLATIONS]] == ["/code", "/x"]
    assert refused(spec, []).message == "The arguments of prompt alias must be an object"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("count", "7", 7),
        ("count", "-007", -7),
        ("count", 7, 7),
        ("ratio", "1", 1.0),
        ("ratio", "-1.5e2", -150.0),
        ("loud", "true", True),
        ("loud", "False", False),
        ("mode", "b", "b"),
        ("level", "2", 2),
        ("level", "1", "1"),
        ("maybe", "3", 3),
        ("maybe", None, None),
        ("either", "3", 3),
        ("either", "true", True),
        ("text", "3", "3"),
        ("mixed", "3", 3),
        ("anything", "3", "3"),
    ],
)
def test_texts_become_values(name: str, text: Any, value: Any) -> None:
    """Fields of other types are parsed from strings; other values are unchanged."""
    found = getattr(spec_of(Typed).prepare({"count": "1", name: text}), name)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("count", "seven", '/count: expected integer, got string "seven"'),
        ("count", "1.5", '/count: expected integer, got string "1.5"'),
        ("count", "٣", '/count: expected integer, got string "٣"'),
        ("count", "", '/count: expected integer, got string ""'),
        ("ratio", "1e999", '/ratio: expected number, got string "1e999"'),
        ("ratio", "nan", '/ratio: expected number, got string "nan"'),
        ("loud", "yes", '/loud: expected boolean, got string "yes"'),
        ("mode", "c", '/mode: must be one of ["a", "b"], got "c"'),
        ("either", "x", '/either: expected integer or boolean, got string "x"'),
        ("maybe", "x", '/maybe: expected integer or null, got string "x"'),
    ],
)
def test_texts_that_are_no_values(name: str, text: str, message: str) -> None:
    """The error for a string that cannot be parsed says what is expected."""
    error = refused(spec_of(Typed), {"count": "1", name: text})
    assert error.message == f"Invalid arguments for prompt typed:\n{message}"


def test_long_numbers() -> None:
    """Long numbers are refused without Python's own error."""
    assert spec_of(Typed).prepare({"count": "9" * 4000}).count == int("9" * 4000)
    assert "expected integer" in refused(spec_of(Typed), {"count": "9" * 5000}).message


@attrs.frozen
class Plain:
    word: str
    number: int = 1


class Level(enum.Enum):
    LOW = 1
    HIGH = "high"


def test_forms_of_every_kind() -> None:
    """Attrs classes, plain classes and typed dicts declare arguments, too."""

    class Words(TypedDict):
        word: Annotated[str, argument(complete=["a"])]

    class OfAttrs(Prompt):
        Arguments = Plain

        def get(self, args: Plain) -> Any: ...

    class OfDict(Prompt):
        Arguments = Words

        def get(self, args: Words) -> Any: ...

    class OfPlain(Prompt):
        class Arguments:
            word: Annotated[Level, "How loud"] = argument(complete=("low",))
            other: bool = field(default=True, title="Other")

        def get(self, args: Any) -> Any: ...

    class Later(TypedDict):
        early: NotRequired[Annotated[str, argument(title="Early", complete=["e"])]]
        late: "Annotated[str, argument(title='Late', complete=['l'])]"

    class OfLater(Prompt):
        Arguments = Later

        def get(self, args: Later) -> Any: ...

    @attrs.frozen
    class Private:
        _word: Annotated[str, argument(title="Word", complete=["w"])]

    class OfPrivate(Prompt):
        Arguments = Private

        def get(self, args: Private) -> Any: ...

    later = spec_of(OfLater)
    assert (later.complete("early"), later.complete("late")) == (("e",), ("l",))
    assert later.definition["arguments"] == [
        {"name": "early", "title": "Early"},
        {"name": "late", "title": "Late", "required": True},
    ]
    private = spec_of(OfPrivate)
    assert private.prepare({"word": "x"}) == Private("x")
    assert private.complete("word") == ("w",)
    assert private.definition["arguments"] == [{"name": "word", "title": "Word", "required": True}]
    assert spec_of(OfAttrs).prepare({"word": "x", "number": "2"}) == Plain("x", 2)
    assert spec_of(OfDict).prepare({"word": "x"}) == {"word": "x"}
    assert spec_of(OfDict).complete("word") == ("a",)
    plain = spec_of(OfPlain)
    assert plain.prepare({"word": "1"}).word is Level.LOW
    assert plain.complete("word") == ("low",)
    assert plain.definition["arguments"] == [
        {"name": "word", "description": "How loud", "required": True},
        {"name": "other", "title": "Other"},
    ]


async def test_a_method_goes_before_lists() -> None:
    """`complete` of the class is called for every argument, declared or not."""

    class Asked(Prompt):
        class Arguments(Schema):
            code: str = argument(complete=["never"])

        def get(self, args: Any) -> Any: ...
        def complete(self, argument: str, prefix: str) -> list[str]:
            return [argument, prefix]

    class Below(Asked, name="below"):
        async def complete(self, argument: str, prefix: str, context: Any) -> Any:
            return [argument, prefix, context]

    source: Any = spec_of(Asked).complete("code")
    assert (source.mode, source.invoke("p", "ctx")) == ("thread", ["code", "p"])
    source = spec_of(Below).complete("unknown")
    assert (source.mode, await source.invoke("p", "ctx")) == ("async", ["unknown", "p", "ctx"])


def test_bases() -> None:
    """A base provides arguments, options and methods; the name comes from the subclass."""

    class Base(Prompt, abstract=True, timeout=3):
        class Arguments(Schema):
            word: str

        def get(self, args: Any, ctx: Context) -> Any:
            return args.word

    class SayHello(Base):
        pass

    spec = spec_of(SayHello)
    assert (spec.name, spec.timeout) == ("say_hello", 3.0)
    assert spec.invoke(spec.prepare({"word": "x"}), None) == "x"
    with pytest.raises(TypeError, match="Base is abstract: there is no prompt to describe"):
        Base.definition()


def test_overrides_of_registrations() -> None:
    """Every option of a registration overrides the class's; hidden=False shows it."""
    registration = prompt(
        Simple,
        name="other name",
        title="U",
        description="E",
        icons=[],
        meta=None,
        hidden=False,
        timeout=4,
    )
    spec = spec_of(registration)
    assert spec.definition == {"name": "other name", "title": "U", "description": "E"}
    assert (spec.hidden, spec.timeout, spec.name) == (False, 4.0, "other name")


TEXT = {"type": "text", "text": "x"}
USER = {"role": "user", "content": TEXT}


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        ("x", [USER]),
        (PromptMessage.assistant("x"), [{"role": "assistant", "content": TEXT}]),
        (Content.text("x"), [USER]),
        (["x", USER, TEXT], [USER, USER, USER]),
        ([], []),
        (PromptResult("x", meta={"k": 1}), [USER]),
    ],
)
def test_results(value: Any, wire: Any) -> None:
    """`get` may return strings, messages and results; the description is that of the prompt."""
    result = to_prompt_result(spec_of(Simple), value)
    assert (result.to_wire()["messages"], result.description) == (wire, "D")
    assert to_prompt_result(None, value).description is None


def test_description_of_a_result() -> None:
    """The description of the result overrides that of the prompt, which may be missing."""
    own = PromptResult("x", "own")
    assert to_prompt_result(spec_of(Simple), own) is own
    registered = spec_of(prompt(Simple, description="registered"))
    assert to_prompt_result(registered, "x").description == "registered"
    assert "description" not in to_prompt_result(spec_of(Typed), "x").to_wire()


async def _never() -> None: ...


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, TypeError, "get returned None; return a message"),
        (3, TypeError, "expected a message, got int; make one: PromptMessage.user(…)"),
        ({"role": "x"}, ProtocolError, "message.content: expected an object, got nothing"),
        ({"type": "text"}, ProtocolError, "content.text: expected a string, got nothing"),
    ],
)
def test_wrong_results(value: Any, error: Any, message: str) -> None:
    """The error for a value that cannot be sent quotes it in the log."""
    with pytest.raises(error) as caught:
        to_prompt_result(None, value)
    assert str(caught.value) == message


def test_a_forgotten_await() -> None:
    """A coroutine is refused, and closed."""
    with pytest.raises(TypeError, match="a coroutine was returned; make get async, or await it"):
        to_prompt_result(None, _never())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
NAMES = st.sampled_from(["count", "ratio", "loud", "mode", "maybe", "either", "other"])
TEXTS = st.text("0123456789-.eE", max_size=6) | st.sampled_from(["true", "a", "1"])


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.dictionaries(NAMES, TEXTS | JSON) | JSON)
def test_any_arguments_are_prepared_or_refused(arguments: Any) -> None:
    """Any arguments are prepared or refused with a protocol error."""
    try:
        outcome = spec_of(Typed).prepare(arguments)
    except McpError as error:
        outcome = error.code
    assert outcome == -32602 or isinstance(outcome, Typed.Arguments)

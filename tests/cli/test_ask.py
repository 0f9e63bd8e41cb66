"""Servers that ask during a command: with a terminal, with a script, and with neither."""

import io
import os
import pty
import sys

import pytest

from noizu_mcp import Decline
from noizu_mcp.cli import main
from noizu_mcp.client.terminal import Dialogue, Terminal, read_fields

from ..person import CTRL_C, Person

ERAS = ("2025-11-25", "2026-07-28")
SERVER = '''
from typing import Literal

import trio

from noizu_mcp import (
    Accept, Context, Prompt, PromptMessage, Resource, Schema, Server, Toolkit, field, fields, mcp,
)

class Trip(Schema):
    """A trip."""

    city: str
    seats: int = field(default=2, min=1, max=8, description="How many")
    berth: Literal["upper", "lower"] = "lower"
    extras: list[Literal["tea", "cake"]] | None = None
    window: bool | None = None
    share: float | None = None

ANY = {"type": "object", "properties": {}}

def told(answer):
    if not isinstance(answer, Accept):
        return answer.action
    content = answer.content
    return "accept" if content is None else str({k: getattr(content, k) for k in (
        "city", "seats", "berth", "extras", "window", "share")})

class Kit(Toolkit):
    @mcp
    async def book(self, args, ctx: Context) -> str:
        return told(await ctx.elicit("Where to?\\nSay \\x1b[2J \\u202eit.", Trip))

    @mcp
    async def agree(self, args, ctx: Context) -> str:
        return (await ctx.elicit("Agree?", ANY)).action

    @mcp
    async def sure(self, ctx: Context, needed: bool = True) -> str:
        form = {"type": "boolean", "title": "Sure?", "description": "It is for good"}
        form |= {} if needed else {"default": False}
        schema = {"type": "object", "properties": {"sure": form}}
        schema |= {"required": ["sure"]} if needed else {}
        answer = await ctx.elicit("Delete all?", schema)
        return f"{answer.action} {answer.content if isinstance(answer, Accept) else ''}"

    @mcp(input={"url": fields.string(required=True)})
    async def visit(self, args, ctx: Context) -> str:
        return told(await ctx.elicit_url("Log in, please", args.url))

    @mcp
    async def both(self, args, ctx: Context) -> str:
        found = {}
        async def ask(name):
            found[name] = (await ctx.elicit(name, ANY)).action
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "first")
            nursery.start_soon(ask, "second")
        return str(sorted(found.items()))

    @mcp
    async def impatient(self, args, ctx: Context) -> str:
        with trio.move_on_after(0.2):
            await ctx.elicit("Quick!", ANY, timeout=None)
        return "went on"

    @mcp
    async def slow(self, args, ctx: Context) -> str:
        await ctx.elicit("Wait?", ANY)
        await trio.sleep_forever()

class Note(Resource, uri="note://x"):
    async def read(self, uri, ctx):
        return (await ctx.elicit("Read?", ANY)).action

class Greet(Prompt):
    """Say hello."""
    async def get(self, args, ctx):
        return [PromptMessage.user((await ctx.elicit("Greet?", ANY)).action)]

class Asking(Server, name="asking", title="The asker", version="1"):
    tools = [Kit]
    resources = [Note]
    prompts = [Greet]
'''


@pytest.fixture
def asking(folder):
    """A working directory with a server that asks."""
    (folder / "asking.py").write_text(SERVER)


@pytest.fixture
def talk(asking, capfd, monkeypatch):
    """Run a command at a terminal; return its status, its stdout and the terminal's output."""

    def talk(words, *exchange):
        master, slave = pty.openpty()
        with (
            os.fdopen(slave, "r") as stdin,
            os.fdopen(os.dup(slave), "w") as stderr,
            monkeypatch.context() as patch,
            Person(master, exchange) as person,
        ):
            patch.setattr(sys, "stdin", stdin)
            patch.setattr(sys, "stderr", stderr)
            status = main(words)
            print(end="", file=stderr, flush=True)
            stderr.close()
            stdin.close()
        os.close(master)
        return status, capfd.readouterr().out, person.text

    return talk


def call(tool, *more, version=ERAS[1]):
    return ("call", "asking.py", tool, *more, "--protocol", version)


FILLED = {
    "city": "Ulm",
    "seats": 3,
    "berth": "upper",
    "extras": ["tea", "cake"],
    "window": True,
    "share": 0.5,
}
PLAIN = {
    **dict.fromkeys(FILLED),
    "city": "Ulm",
    "seats": 2,
    "berth": "lower",
}


@pytest.mark.parametrize("version", ERAS)
def test_a_form(talk, version):
    """The form says who asks and why; input is read, checked, and requested again."""
    status, out, shown = talk(
        call("book", version=version),
        ("Answer? yes, no, cancel [yes]:", "\n"),
        ("city:", "\n"),
        ("once more, or Ctrl-D", ""),
        ("city:", "Ulm\n"),
        ("seats [2]:", "9\n"),
        ("9 is greater than the maximum of 8; once more", ""),
        ("seats [2]:", "many\n"),
        ("this is no whole number", ""),
        ("seats [2]:", "3\n"),
        ("1) upper", ""),
        ("berth [lower]:", "middle\n"),
        ("'middle' is not one of the choices", ""),
        ("berth [lower]:", "1\n"),
        ("extras:", "tea, 2\n"),
        ("window:", "perhaps\n"),
        ("answer yes or no", ""),
        ("window:", "Y\n"),
        ("share:", "0.5\n"),
        ("Send it? yes, no, cancel [yes]:", "why\n"),
        ("Send it? yes, no, cancel [yes]:", "y\n"),
    )
    assert (status, out) == (0, f"{FILLED}\n"), shown
    assert "The asker asks:" in shown
    assert "  | Where to?" in shown
    assert "Say \\u{1B}[2J \\u{202E}it." in shown


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("exchange", "answer"),
    [
        ([("Answer?", "n\n")], "decline"),
        ([("Answer?", "cancel\n")], "cancel"),
        ([("Answer?", "\x04")], "cancel"),
        ([("Answer?", "y\n"), ("city:", "\x04")], "cancel"),
    ],
)
def test_a_form_that_is_not_filled_in(talk, version, exchange, answer):
    """The form can be declined and cancelled at the start; Ctrl-D cancels at any time."""
    assert talk(call("book", version=version), *exchange)[:2] == (0, f"{answer}\n")


def test_second_thoughts(talk):
    """A completed form is sent after a yes; blank fields are left out."""
    blank = [(f"{name}:", "\n") for name in ("extras", "window", "share")]
    filled = [("Answer?", "\n"), ("city:", "Ulm\n"), ("[2]:", "\n"), ("[lower]:", "\n"), *blank]
    assert talk(call("book"), *filled, ("Send it?", "\n"))[:2] == (0, f"{PLAIN}\n")
    assert talk(call("book"), *filled, ("Send it?", "no\n"))[:2] == (0, "decline\n")


@pytest.mark.parametrize("version", ERAS)
def test_a_form_without_fields(talk, version):
    """One yes is enough."""
    words = ("prompt", "asking.py", "greet", "--protocol", version)
    assert talk(words, ("Answer?", "yes\n"))[:2] == (0, "user:\naccept\n")
    words = ("read", "asking.py", "note://x", "--protocol", version)
    assert talk(words, ("Answer?", "yes\n"))[:2] == (0, "accept")


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (["yes"], "accept {'sure': True}"),
        (["N"], "accept {'sure': False}"),
        (["", "perhaps", "y"], "accept {'sure': True}"),
        (["decline"], "decline "),
        (["c"], "cancel "),
        (["\x04"], "cancel "),
    ],
)
def test_one_yes_or_no(talk, version, typed, answer):
    """The answer to a single boolean is also the consent."""
    asked = "Sure? yes, no, decline, cancel:"
    lines = [(asked, word if word == "\x04" else f"{word}\n") for word in typed]
    status, out, shown = talk(call("sure", version=version), *lines)
    assert (status, out) == (0, f"{answer}\n"), shown
    assert "  Sure?: It is for good (yes or no)" in shown
    assert shown.count("?") == 2 + len(typed)  # the message, the field, and each prompt


def test_one_yes_or_no_with_a_default(talk):
    """An empty line selects the default."""
    line = ("Sure? yes, no, decline, cancel [no]:", "\n")
    assert talk(call("sure", "needed=false"), line)[1] == "accept {'sure': False}\n"


@pytest.mark.parametrize("version", ERAS)
def test_two_questions_at_once(talk, version):
    """They are asked one after the other."""
    status, out, shown = talk(
        call("both", version=version),
        ("Answer?", "yes\n"),
        ("Answer?", "no\n"),
    )
    assert status == 0
    assert sorted(word for word in ("accept", "decline") if word in out) == ["accept", "decline"]
    assert shown.count("The asker asks:") == 2


@pytest.mark.parametrize("version", ERAS)
def test_a_url(talk, version):
    """The whole URL is shown, its host is highlighted, and only a yes accepts."""
    url = "https://example.com@evil.test/login"
    found = talk(call("visit", f"url={url}", version=version), ("browser of yours?", "\n"))
    assert found[:2] == (0, "decline\n")
    assert "https://example.com@\x1b[1;7mevil.test\x1b[0m/login" in found[2]
    assert "It leads to \x1b[1;7mevil.test\x1b[0m." in found[2]
    assert "look twice" not in found[2]
    found = talk(call("visit", f"url={url}", version=version), ("browser of yours?", "yes\n"))
    assert found[:2] == (0, "accept\n")


def test_a_url_with_strange_letters(talk):
    """A host that may be confused with another one is pointed out."""
    found = talk(
        call("visit", "url=http://xn--pple-43d.com/"), ("look twice", ""), ("[no]:", "n\n")
    )
    assert found[:2] == (0, "decline\n")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://["])
def test_no_web_address(talk, url):
    """A URL that a browser would not open safely is declined."""
    status, out, shown = talk(call("visit", f"url={url}"))
    assert (status, out) == (0, "decline\n")
    assert "This is no web address: declined." in shown


async def test_a_url_with_letters_that_are_not_seen():
    """It is declined, whatever the server has checked."""
    master, slave = pty.openpty()
    shown = io.StringIO()
    try:
        dialogue = Dialogue(Terminal(slave, shown), "The asker")
        url = "https://example.com/\u202egpj.exe"
        answer = await dialogue.answer({"mode": "url", "url": url, "message": "Visit"})
    finally:
        os.close(master)
        os.close(slave)
    assert answer == Decline()
    assert "This is no web address: declined." in shown.getvalue()


def test_a_question_that_is_taken_back(talk):
    """The terminal says that the question is no longer asked."""
    words = call("impatient", version=ERAS[0])
    status, out, shown = talk(words, ("(the question is no longer asked)", ""))
    assert (status, out) == (0, "went on\n"), shown


@pytest.mark.parametrize("version", ERAS)
def test_ctrl_c(talk, version):
    """It ends the command, and the server gets no answer."""
    assert talk(call("agree", version=version), ("Answer?", CTRL_C))[:2] == (130, "")


def test_the_time_of_the_person_is_not_that_of_the_server(talk):
    """The timeout is paused during a question."""
    status, out, shown = talk((*call("slow"), "--timeout", "0.5"), ("Answer?", "y\n"))
    assert (status, out) == (1, "")
    assert "noizu-mcp: the server did not answer within 0.5 s" in shown


def test_what_was_typed_before_is_no_answer(talk):
    """A line that was typed before the question is dropped."""
    status, out, _ = talk(call("agree"), ("", "yes\n"), ("Answer?", "no\n"))
    assert (status, out) == (0, "decline\n")


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("answers", "printed"),
    [
        ('{"city": "Ulm", "unknown": 1}', f"{PLAIN}\n"),
        ('[{"city": "Ulm", "window": null}]', f"{PLAIN}\n"),
        ('"decline"', "decline\n"),
        ('["cancel"]', "cancel\n"),
    ],
)
def test_answers_of_a_script(run, asking, version, answers, printed):
    """`--answers` fills in forms by field names; other fields have their defaults."""
    assert run(*call("book", "--answers", answers, version=version)) == (0, printed, "")


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ("{", "--answers is not JSON: "),
        ("[3]", "an answer of --answers is an object or one of "),
        ("[]", "--answers has no answer left for: Where to?"),
        ('"accept"', "--answers: city: the form needs it\n"),
        ('{"city": 3}', "--answers: city: expected string, got integer 3\n"),
        ('{"city": "Ulm", "seats": 9}', "--answers: seats: "),
    ],
)
def test_invalid_answers(run, asking, version, answers, message):
    """They end the command before anything is sent to the server."""
    status, out, err = run(*call("book", "--answers", answers, version=version))
    assert (status, out) == (2, "")
    assert err.startswith(f"noizu-mcp: {message}"), err
    assert err.count("\n") == 1


@pytest.mark.parametrize("version", ERAS)
def test_a_script_agrees_to_a_url(run, asking, version):
    """`accept` accepts, and opens nothing."""
    words = call("visit", "url=https://x.test", "--answers", '"accept"', version=version)
    assert run(*words) == (0, "accept\n", "")


@pytest.mark.parametrize("stdin", [None, io.StringIO()])
def test_no_terminal(run, asking, monkeypatch, stdin):
    """Without a terminal the question is declined, and logged."""
    monkeypatch.setattr(sys, "stdin", stdin)
    status, out, err = run(*call("agree"))
    assert (status, out) == (0, "decline\n")
    assert err == "noizu-mcp: The asker asks: Agree? (declined: no terminal, and no --answers)\n"


def fields_of(**properties):
    return read_fields({"properties": properties, "required": list(properties)})


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}, "B", "b"),
        ({"type": "string", "enum": ["2", "1"]}, "1", "1"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "The A"}, 5]}, "The A", "a"),
        (
            {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b"}]}},
            "1,b",
            ["a", "b"],
        ),
        ({"type": "array", "items": 5}, "[1]", [1]),
        ({"type": "boolean"}, "No", False),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": 5}, "5", 5),
        ({"enum": 5}, '"x"', "x"),
    ],
)
def test_fields_of_every_revision(schema, text, value):
    """Titles of choices have three forms; fields of other kinds are read as JSON."""
    (field,) = fields_of(x=schema)
    assert field.read(text) == value


def test_what_is_no_json():
    """A field of an unknown kind expects JSON, and says so."""
    (field,) = fields_of(x={"type": "object"})
    with pytest.raises(ValueError, match="this is no JSON"):
        field.read("{")


@pytest.mark.parametrize("schema", [None, {"properties": 5}, {"properties": {"a": 5}}, {}])
def test_invalid_forms(schema):
    """A malformed form asks nothing."""
    assert read_fields(schema) == []


def test_a_form_whose_parts_are_null():
    """A form with null as its parts has optional fields without choices."""
    (field,) = read_fields({"properties": {"a": {"enum": None, "oneOf": None}}, "required": None})
    assert (field.required, field.choices) == (False, [])


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "boolean", "default": True}, "yes"),
        ({"type": "boolean", "default": False}, "no"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "a"}, "A"),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a", "b"]}, "a, b"),
        ({"type": "integer", "default": 0}, "0"),
        ({"type": "integer"}, ""),
    ],
)
def test_defaults(schema, shown):
    """A default is shown by its title."""
    (field,) = read_fields({"properties": {"x": schema}})
    assert field.shown_default == shown


def test_explanations():
    """A field shows its purpose, its allowed values, and whether it is required."""
    schema = {"type": "string", "description": "Your mail", "format": "email", "maxLength": 9}
    (field,) = read_fields({"properties": {"x": schema}})
    assert field.explanation == "Your mail (text, email, 9 letters or fewer, optional)"
    (field,) = fields_of(x={"type": "array", "items": {"enum": ["a"]}, "minItems": 1})
    assert field.explanation == "(several of these, with commas between, 1 or more of them)"

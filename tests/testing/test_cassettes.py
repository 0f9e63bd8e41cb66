"""Cassettes: recording, replay, redaction, and differences from the recording."""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noizu_mcp import Context, McpError, Server, SyncClient, Toolkit, connect, mcp, resource
from noizu_mcp.testing import ScriptedHandler, hide_secrets, record, replay

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


class Kit(Toolkit):
    @mcp
    def add(self, a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @mcp
    async def count(self, to: int, ctx: Context) -> str:
        """Report progress."""
        for step in range(to):
            await ctx.report_progress(step, to)
        return "counted"

    @mcp
    async def ask(self, question: str, ctx: Context) -> str:
        """Ask the user."""
        answer = await ctx.elicit(question, {"name": str})
        return f"Hello {answer}"

    @mcp
    def log_in(self, password: str) -> str:
        """Take a secret."""
        return f"Bearer {password * 3}"


def page(part: str) -> str:
    """Give a page."""
    return f"page {part}"


class Counting(Toolkit):
    def __init__(self) -> None:
        self.number = 0

    @mcp
    def count(self) -> int:
        self.number += 1
        return self.number


class Counter(Server, name="counter", version="1.0.0"):
    tools = [Counting]


class Docs(Server, name="docs", version="1.0.0"):
    tools = [Kit]
    resources = [resource(page, uri="docs://{part}")]


async def talk(client: Any, operations: Any) -> list[Any]:
    """Perform operations of a user, and record all results."""
    seen: list[Any] = []
    for name, value in operations:
        try:
            if name == "list":
                seen.append(await client.list_tools())
            elif name == "read":
                seen.append(await client.read_resource(value))
            else:
                seen.append(await client.call_tool(name, value, progress=seen.append))
        except McpError as error:
            seen.append((error.code, error.message))
    return seen


OPERATIONS = st.one_of(
    st.just(("list", None)),
    st.builds(
        lambda a, b: ("add", {"a": a, "b": b}), st.integers(-2, 2), st.sampled_from([1, "x"])
    ),
    st.builds(lambda to: ("count", {"to": to}), st.integers(0, 3)),
    st.builds(lambda text: ("ask", {"question": text}), st.sampled_from(["Who?", "You?"])),
    st.sampled_from(["docs://a", "docs://b", "other://c"]).map(lambda uri: ("read", uri)),
    st.just(("nothing", {})),
)


EVERYTHING = [
    *(("list", None), ("add", {"a": 1}), ("add", {"a": "x"}), ("count", {"to": 2})),
    *(("ask", {"question": "Who?"}), ("read", "docs://a"), ("read", "other://c"), ("nothing", {})),
]


def check_replay(version: str, operations: Any, path: Path) -> None:
    """Record a session, and check that it is the same in the replay."""
    answers = [{"name": "Ada"}] * len(operations)

    async def session(target: Any, **options: Any) -> list[Any]:
        # Before 2025-06-18 there are no questions.
        handler = ScriptedHandler(elicitation=answers) if version > "2025-06" else None
        async with connect(target, version=version, handler=handler, **options) as client:
            return await talk(client, operations)

    with record(path) as tap:
        said = trio.run(lambda: session(Docs, tap=tap))
    played = replay(path)

    assert trio.run(session, played) == said
    played.done()


@pytest.mark.parametrize("version", REVISIONS)
def test_a_replay_says_what_the_server_said(version: str, tmp_path: Path) -> None:
    """Results, errors, progress and questions are the recorded ones."""
    check_replay(version, EVERYTHING, tmp_path / "a.jsonl")


@pytest.mark.slow
@given(version=st.sampled_from(REVISIONS), operations=st.lists(OPERATIONS, max_size=6))
def test_every_session_can_be_replayed(
    version: str, operations: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any session on any revision can be replayed."""
    check_replay(version, operations, tmp_path_factory.getbasetemp() / "any.jsonl")


@settings(max_examples=10)  # each uses two connections
@given(numbers=st.lists(st.integers(0, 9), min_size=1, max_size=8), order=st.randoms())
def test_the_order_of_requests_may_differ(
    numbers: list[int], order: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each request gets its own answer, whatever was sent before it."""
    path = tmp_path_factory.getbasetemp() / "order.jsonl"
    shuffled = list(numbers)
    order.shuffle(shuffled)

    async def add(client: Any, number: int) -> None:
        result = await client.call_tool("add", {"a": number})
        assert result.content[0].text == str(number + 1)

    async def session(target: Any, wanted: list[int], **options: Any) -> None:
        async with (
            connect(target, version="2025-11-25", **options) as client,
            trio.open_nursery() as nursery,
        ):
            for number in wanted:
                nursery.start_soon(add, client, number)

    with record(path) as tap:
        trio.run(lambda: session(Docs, numbers, tap=tap))
    played = replay(path)
    trio.run(lambda: session(played, shuffled))
    played.done()


def recorded(path: Path, *calls: tuple[str, dict[str, Any]], **options: Any) -> Path:
    """Record a session of calls."""
    with (
        record(path, **options) as tap,
        SyncClient(Docs, version="2025-11-25", tap=tap) as client,
    ):
        for name, arguments in calls:
            client.call_tool(name, arguments)
    return path


def test_what_is_not_recorded_is_refused(tmp_path: Path) -> None:
    """The error has the request and the recorded one; `done` lists both."""
    played = replay(recorded(tmp_path / "a.jsonl", ("add", {"a": 1})))
    with SyncClient(played, version="2025-11-25") as client:
        with pytest.raises(McpError, match="no such request: tools/call") as caught:
            client.call_tool("add", {"a": 2})
        with pytest.raises(McpError, match=r"no such request: tools/list \{\}"):
            client.list_tools()
        client.notify("notifications/strange")

    assert 'the next tools/call in it is tools/call {"name": "add", "arguments": {"a": 1}}' in str(
        caught.value
    )
    with pytest.raises(AssertionError) as failed:
        played.done()
    assert str(failed.value).split("; ") == [
        'not recorded: tools/call {"name": "add", "arguments": {"a": 2}}',
        "not recorded: tools/list {}",
        "not recorded: notifications/strange {}",
        'not sent: tools/call {"name": "add", "arguments": {"a": 1}}',
    ]


def test_a_step_is_taken_once(tmp_path: Path) -> None:
    """A request that was recorded once is answered once; true differs from 1."""
    played = replay(recorded(tmp_path / "a.jsonl", ("add", {"a": 1})))
    with SyncClient(played, version="2025-11-25") as client:
        with pytest.raises(McpError, match="no such request"):
            client.call_tool("add", {"a": True})
        assert client.call_tool("add", {"a": 1}).content[0].text == "2"
        with pytest.raises(McpError, match="no such request"):
            client.call_tool("add", {"a": 1})


def test_steps_may_be_repeated(tmp_path: Path) -> None:
    """The recorded answers are used in turn, then the last one again; others are refused."""
    path = tmp_path / "a.jsonl"
    with record(path) as tap, SyncClient(Counter, tap=tap) as client:
        counts = [client.call_tool("count").structured for _ in range(2)]
    played = replay(path, repeat=True)
    with SyncClient(played) as client:
        again = [client.call_tool("count").structured for _ in range(4)]
        with pytest.raises(McpError, match=r'the next tools/call in it is tools/call {"name": "c'):
            client.call_tool("add", {"a": 1})

    assert (counts, again) == ([1, 2], [1, 2, 2, 2])


@pytest.mark.parametrize("version", REVISIONS)
def test_a_replay_has_the_revision_of_its_recording(version: str, tmp_path: Path) -> None:
    """A client without a pinned version gets that of the recording."""
    path = tmp_path / "a.jsonl"
    with record(path) as tap, SyncClient(Counter, version=version, tap=tap) as client:
        client.call_tool("count")
    with SyncClient(replay(path)) as client:
        assert client.protocol_version == version
        assert client.call_tool("count").content[0].text == "1"


def test_secrets_are_not_written(tmp_path: Path) -> None:
    """A password is hidden in the file, and a replay accepts any; the result shows none."""
    path = recorded(tmp_path / "a.jsonl", ("log_in", {"password": "hunter22"}))

    assert "hunter22" not in path.read_text()
    with SyncClient(replay(path), version="2025-11-25") as client:
        result = client.call_tool("log_in", {"password": "another"})
    assert result.content[0].text == "Bearer [hidden]"


def test_redaction_is_a_function(tmp_path: Path) -> None:
    """A function changes what is written, and what is compared."""

    def hide_numbers(message: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(message)
        return json.loads(text.replace('"a": 1', '"a": 0').replace('"a": 2', '"a": 0'))

    path = recorded(tmp_path / "a.jsonl", ("add", {"a": 1}), redact=hide_numbers)

    assert '"a": 0' in path.read_text()
    with SyncClient(replay(path, redact=hide_numbers), version="2025-11-25") as client:
        assert client.call_tool("add", {"a": 2}).content[0].text == "2"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
NAMES = (
    "Authorization",
    "x-api-key",
    "api_key",
    "PASSWORD",
    "client_secret",
    "token",
    "Set-Cookie",
)


@given(around=JSON, name=st.sampled_from(NAMES))
def test_hiding_keeps_the_shape(around: Any, name: str) -> None:
    """Other values stay; redaction is idempotent; properties of schemas stay."""
    value = {"kept": around, name: "s3cret-text", "schema": {name: {"type": "string"}}}
    hidden = hide_secrets(value)

    assert hidden[name] == "[hidden]"
    assert hidden["schema"] == value["schema"]
    assert value[name] == "s3cret-text"
    assert hide_secrets(hidden) == hidden
    assert hide_secrets(["Bearer abc.def-ghi/jkl="]) == ["Bearer [hidden]"]
    assert hide_secrets("Basic research, Bearer of news") == "Basic [hidden], Bearer of news"


TOKEN = "s3cr3tTOKENvalue1234567890"
WITH_SECRETS = [
    f"Authorization: Bearer {TOKEN}",
    f"authorization: {TOKEN}",
    f"Cookie: sid={TOKEN}",
    f"https://user:{TOKEN}@example.com/x",
    f"git clone https://{TOKEN}@example.com/a.git",
    f"https://example.com/cb?x=1&access_token={TOKEN}#end",
    f"https://example.com/cb?code={TOKEN}&state=1",
    f"https://example.com/?next=https%3A%2F%2Fu%3A{TOKEN}%40h%2F%3Ftoken%3D{TOKEN}",
    f"--token={TOKEN} --set a=password={TOKEN}",
    f"API_KEY={TOKEN}\npassword: hunter22 {TOKEN[:0]}",
    f"sk-ant-{TOKEN}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{TOKEN}\n",
    json.dumps({"text": json.dumps({"password": TOKEN})}),
    f'{{"token": "{TOKEN}',
    {"id_token": TOKEN, "password": [TOKEN, 12345678], "credentials": {"user": TOKEN, "on": True}},
    {"name": "Authorization", "value": TOKEN},
    [["Cookie", TOKEN], ["accept", "*"]],
    {f"Bearer {TOKEN}": 1},
    {"password": {"type": "string", "default": f"Bearer {TOKEN}"}},
    {"tokens": [TOKEN], "passwords": {"a": TOKEN}, "api-keys": [[TOKEN]], "userPIN": TOKEN},
    {"session_id": TOKEN, "Mcp-Session-Id": TOKEN, "JSESSIONID": TOKEN, "PIN": 12345678},
    {"args": ["run", "--password", TOKEN, "--api-key", TOKEN, "-v"]},
    ["curl", "-u", f"user:{TOKEN} {TOKEN}", "--proxy-user", f"user:{TOKEN}", "https://h"],
    [["tokens", [TOKEN]], ["X-Api-Key", TOKEN]],
    f"curl -u user:{TOKEN} -x http://h --proxy-user 'user:{TOKEN}' https://example.com",
    f"curl --user=admin:{TOKEN} https://example.com",
    f"smbclient //h/s -U user%{TOKEN}",
    f"sshpass -p {TOKEN} ssh h; mysql -u root -p{TOKEN} db; redis-cli -a {TOKEN}",
    f"docker login -u me -p {TOKEN} registry.example.com",
    f"tool --password {TOKEN} --token '{TOKEN}' -passphrase {TOKEN}",
    f"machine example.com login me password {TOKEN}",
    f'Authorization: Digest username="me", realm="a", response="{TOKEN}", nc=00000001',
    f'"authorization": "Digest username=\\"me\\", response=\\"{TOKEN}\\""',
    f'curl -H \'Authorization: Digest username="me", response="{TOKEN}"\' https://h',
    f'got Digest username="me", response="{TOKEN}"',
    f"Proxy-Authorization: Negotiate {TOKEN}==",
    f"Set-Cookie: sid={TOKEN}; Path=/; HttpOnly\nCookie2: a={TOKEN}",
    f"AWS4-HMAC-SHA256 Credential=AKIA/20260728/x/s3/aws4_request, Signature={TOKEN}",
    f"postgres://user:p@{TOKEN}@example.com:5432/db and redis://:{TOKEN}@h/0",
    f"jdbc:postgresql://h/db?user=me&password={TOKEN}",
    f"Server=h;User Id=me;Password={TOKEN};AccountKey={TOKEN}==",
    f"https://h/b?X-Amz-Credential={TOKEN}&X-Amz-Signature={TOKEN}&x-goog-signature={TOKEN}",
    f"eyJhbGciOiJub25l.{TOKEN}.{TOKEN}.{TOKEN}.{TOKEN}",
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{TOKEN}\n-----END PGP PRIVATE KEY BLOCK-----",
    f"<password>{TOKEN}</password><ns:apiKey>{TOKEN}</ns:apiKey>",
    f'name="password"\r\n\r\n{TOKEN}\r\n--boundary',
    f"tokens:\n  - {TOKEN}\n  - {TOKEN}\nother: 1",
    f"tokens = ['{TOKEN}', '{TOKEN}']",
    f"password = correct horse {TOKEN}",
    f"[:password => '{TOKEN}', :secret=>'{TOKEN}']; token := \"{TOKEN}\"",
    f"user[password]={TOKEN}&user%5Btoken%5D={TOKEN}",
    f"the API key: {TOKEN}1, your access token is not it",
    f"whsec_{TOKEN} sk_live_{TOKEN} npm_{TOKEN}{TOKEN} 123456789:AA{TOKEN}{TOKEN}",
]


def test_secrets_are_found_by_name_and_form() -> None:
    """They are found in objects, headers, texts, URLs and base64; redaction is idempotent."""
    for value in WITH_SECRETS:
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = json.dumps({"\u00ff?>~": "~~~???>>>", "value": value}, ensure_ascii=False)
            encoded = encode(text.encode()).decode()
            hidden = hide_secrets([value, {"blob": encoded}])
            altchars = b"-_" if encode is base64.urlsafe_b64encode else None
            blob = base64.b64decode(hidden[1]["blob"], altchars=altchars).decode()

            shown = f"{json.dumps(hidden[0])} {blob}"
            assert not any(secret in shown for secret in (TOKEN, "hunter22", "12345678")), value
            assert hide_secrets(hidden) == hidden


@pytest.mark.parametrize(
    "value",
    [
        "password: required. The token: a text.",
        "https://example.com/a?page=2#b",
        "a=b; c: d",
        "docs://me@b",
        "AAAAAAAAAAAAAAAAAAAAAAAA",
        {"_meta": {"progressToken": "abc"}, "maxTokens": 5, "error": {"code": -32603}},
        {"required": ["password", "user"], "properties": {"token": {"$ref": "#/$defs/a"}}},
        {"name": None, "value": 3, "token": None},
        {"pinned": "yes", "session": "x", "spin": 12345678, "compass": "north", "opinion": "x"},
        {"tokens_used": 12, "tokens": 12, "max_tokens": "500", "totalTokens": 7, "bypass": "x"},
        "tokens: 12, tokens_used=12, max_tokens=500; the session: one; spin: fast; pinned: yes1",
        "docker run -u 1000:1000 -p 8080:80 image; mkdir -p a/b; ssh -p 22 h; psql -p 5432",
        "a Digest of news, a Signature of mine, an OAuth server; tool --tokens 500 --pinned yes",
        ["--verbose", "x", "--tokens-used", "12", "-p", "80", "-u", "1000:1000", "-u", "me"],
        "<b>bold</b> a => b; c := d; x[1]=2; API: v1; the key: C major",
    ],
)
def test_what_is_no_secret_stays(value: Any) -> None:
    """Prose, names of the protocol, schemas and other texts are written unchanged."""
    assert hide_secrets(value) == value


BASES = (
    *(("password",), ("api", "key"), ("secret",), ("token",), ("private", "key"), ("credential",)),
    *(("session", "id"), ("pin",), ("cookie",), ("passphrase",), ("otp",), ("access", "key", "id")),
)
CASES = (
    "_".join,
    "-".join,
    lambda words: "".join(words[:1]) + "".join(map(str.capitalize, words[1:])),
    lambda words: "_".join(words).upper(),
    lambda words: "".join(map(str.capitalize, words)),
)
PLACES: tuple[Callable[[str, str], Any], ...] = (
    lambda name, value: {name: value},
    lambda name, value: {name: [value, {"a": value}]},
    lambda name, value: {"name": name, "value": value},
    lambda name, value: [[name, value]],
    lambda name, value: json.dumps({"a": [{name: value}]}),
    lambda name, value: f'{{"a": "b", "{name}": "{value}',
    lambda name, value: f"https://example.com/?a=b&{name}={value}#c",
    lambda name, value: f"run --a b --{name} {value} --c",
    lambda name, value: f"run --{name}={value} --c",
    lambda name, value: f"A=b\n{name}={value}\nC=d",
    lambda name, value: f"a: b\n{name}: '{value}'\nc: d",
    lambda name, value: f"<{name}>{value}</{name}>",
    lambda name, value: f"{{'{name}': '{value}', 'a': 1}}",
    lambda name, value: ["run", f"--{name}", value],
    lambda name, value: base64.b64encode(
        json.dumps({"some": "text", name: value}).encode()
    ).decode(),
)


@given(
    st.sampled_from(("", "user", "x", "github", "max")),
    st.sampled_from(BASES),
    st.sampled_from(CASES),
    st.sampled_from(("", "s")),
    st.sampled_from(PLACES),
    st.from_regex(r"[a-z]{4}[A-Z0-9]{8,24}", fullmatch=True),
)
@example(
    "", ("cookie",), "_".join, "", lambda name, value: f"{{'{name}': '{value}'}}", "aaaa00000000"
)
def test_what_stands_under_such_a_name_is_hidden(
    prefix: str, base: Any, case: Any, end: str, place: Any, value: str
) -> None:
    """The name may be spelled in any way, have several words, and be in any place."""
    name = case([*filter(None, [prefix]), *base[:-1], base[-1] + end])
    hidden = json.dumps(hide_secrets(place(name, value)))

    for word in (hidden, *map(decoded, re.findall(r"[\w+/]{16,}={0,2}", hidden))):
        assert value not in word
    assert hide_secrets(json.loads(hidden)) == json.loads(hidden)


def decoded(text: str) -> str:
    """Decode a text if it is base64."""
    try:
        return base64.b64decode(text).decode()
    except ValueError:
        return ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "a",
        "x:",
        "-u ",
        "-u a:",
        "password: - ",
        "--a ",
        "login ",
        "tokens=[",
        "sshpass -p",
        "password=",
        '"',
        "://",
        "://:",
        "-eyJ",
        "\\",
        "Bearer ",
        "a=' ",
        "?sig",
    ],
)
def test_long_texts_are_redacted(part: str) -> None:
    """A text of a peer is read a constant number of times."""
    long = part * (100_000 // len(part))
    assert hide_secrets(hide_secrets(long)) == hide_secrets(long)


def test_an_error_shows_no_secret(tmp_path: Path) -> None:
    """A request that was not recorded is redacted in the error."""
    path = recorded(tmp_path / "a.jsonl", ("add", {"a": 1}))
    played = replay(path)

    with (
        SyncClient(played, version="2025-11-25") as client,
        pytest.raises(McpError, match="hidden") as caught,
    ):
        client.call_tool("log_in", {"password": TOKEN})
    assert TOKEN not in f"{caught.value}{played.unexpected}"


def test_a_file_is_written_line_by_line(tmp_path: Path) -> None:
    """A program that ends early leaves what it has sent; bytes that are not JSON are left out."""
    path = tmp_path / "new" / "a.jsonl"
    with record(path) as tap:
        tap("sent", b'[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"},3]')
        tap("received", b"no JSON")
        lines = [json.loads(line) for line in path.read_text().splitlines()]

    assert lines == [
        {"cassette": 1},
        {"sent": {"jsonrpc": "2.0", "method": "a"}},
        {"sent": {"jsonrpc": "2.0", "method": "b"}},
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hello", r'is no cassette: its first line is \{"cassette": 1\}'),
        ('{"cassette": 2}', "is no cassette"),
        ('{"cassette": 1}\n{"said": {}}', r":2: a line is"),
        ('{"cassette": 1}\n[]', r":2: a line is"),
        ('{"cassette": 1}\n{"sent": 3}', r":2: a line is"),
    ],
)
def test_a_file_that_is_no_cassette_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    """The error has the name of the file and the line."""
    path = tmp_path / "a.jsonl"
    path.write_text(text)

    with pytest.raises(ValueError, match=problem):
        replay(path)


async def test_notices_belong_to_their_causes(tmp_path: Path) -> None:
    """Messages of the server are replayed in order; a notice follows the message before it."""
    path = tmp_path / "a.jsonl"
    lines = [
        {"cassette": 1},
        {"received": {"jsonrpc": "2.0", "method": "hello"}},
        {"sent": {"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"_meta": None}}},
        {"sent": {"jsonrpc": "2.0", "id": 8, "method": "ping", "params": {"x": 1}}},
        {"received": {"jsonrpc": "2.0", "method": "after", "params": {"requestId": [7]}}},
        {"received": {"jsonrpc": "2.0", "method": "cancel", "params": {"requestId": 7}}},
        {"sent": {"jsonrpc": "2.0", "method": "stop", "params": {"requestId": 8}}},
        {"received": {"jsonrpc": "2.0", "method": "stopped"}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    played = replay(path)

    async def take() -> Any:
        (received,) = await played.receive()
        return json.loads(received.data)

    assert (await take())["method"] == "hello"
    await played.send([b'{"jsonrpc":"2.0","id":"a","method":"ping"}'])
    assert (await take())["params"] == {"requestId": "a"}
    await played.send([b'{"jsonrpc":"2.0","id":"b","method":"ping","params":{"x":1}}'])
    assert (await take())["params"] == {"requestId": [7]}
    await played.send([b'{"jsonrpc":"2.0","method":"stop","params":{"requestId":"b"}}'])
    assert (await take())["method"] == "stopped"
    played.done()
    await played.aclose()
    assert await played.receive() == ()

"""Remote servers: a real one over HTTP, in a thread with its own loop."""

import json
import threading
from concurrent.futures import Future
from functools import partial

import pytest
import trio

from noizu_mcp import Context, Tool, serve_http
from noizu_mcp.auth import BearerAuth, Principal, StaticVerifier
from noizu_mcp.server import load_server

AUTH = BearerAuth(
    StaticVerifier({"t0ken": Principal(subject="ada")}),
    resource="http://127.0.0.1/mcp",
    authorization_servers=["https://issuer.example"],
)
STOP = "a URL names a server that runs already; give module:Server or path/to/file.py"


class Whoami(Tool):
    """Say who is calling."""

    async def call(self, args, ctx: Context):
        return ctx.auth.subject if ctx.auth else "nobody"


@pytest.fixture
def serve(folder):
    """Serve the server of `demo.py`; yields its URL."""
    stops, threads = [], []

    def start(**options):
        started = Future()

        async def main():
            server = load_server("demo.py")
            server.tools.add(Whoami)
            async with trio.open_nursery() as nursery:
                run = partial(serve_http, server, port=0, **options)
                host = await nursery.start(run)
                started.set_result(
                    (f"{host.urls[0]}/mcp", host, trio.lowlevel.current_trio_token())
                )

        thread = threading.Thread(target=trio.run, args=(main,), daemon=True)
        thread.start()
        threads.append(thread)
        url, host, token = started.result(30)
        stops.append(partial(token.run_sync_soon, host.stop))
        return url

    yield start
    for stop in stops:
        stop()
    for thread in threads:
        thread.join(30)


def test_everything_at_a_url(serve, run):
    """Each command accepts a URL instead of a server."""
    url = serve()

    status, listed, _ = run("list", "--all", url)
    assert status == 0
    assert "echo" in listed
    assert "config://app" in listed
    assert run("call", url, "echo", "message=hi", "times=2") == (0, "hihi\n", "")
    assert run("read", url, "note://monday") == (0, "monday", "")
    assert run("prompt", url, "review", "code=x")[1].startswith("user:\nReview x")
    assert run("complete", url, "note://{day}", "day", "mon") == (0, "mon1\n", "")
    assert run("call", url, "ecko")[:2] == (2, "")


def test_a_url_without_the_path(serve, run):
    """The server names its endpoint, unless that has another path."""
    url = serve().removesuffix("/mcp")
    told = f"noizu-mcp: nothing is at {url}; the endpoint is /mcp\n"
    assert run("list", url) == (1, "", told)
    status, _, err = run("list", f"{url}/", "--protocol", "2026-07-28")
    assert (status, err.endswith(f"nothing is at {url}/; the endpoint is /mcp\n")) == (1, True)
    url = serve(path="/hidden").removesuffix("/mcp")
    told = f"noizu-mcp: {url} answered 404 Not Found: Nothing is at /; most servers are at /mcp\n"
    assert run("list", url) == (1, "", told)
    told = f"noizu-mcp: {url}/mcp answered 404 Not Found: Nothing is at /mcp\n"
    assert run("list", f"{url}/mcp") == (1, "", told)


@pytest.mark.parametrize(
    "header",
    ["Authorization: Bearer t0ken", "authorization=Bearer t0ken", "Authorization:Bearer t0ken"],
)
def test_headers_go_along(serve, run, header):
    """A token can be given as a header; both spellings are equivalent."""
    url = serve(auth=AUTH)

    assert run("call", url, "whoami", "--header", header) == (0, "ada\n", "")


def test_a_server_that_wants_a_token(serve, run):
    """One line says so, and how to provide one."""
    url = serve(auth=AUTH)
    status, out, err = run("list", url)

    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    hint = f"give a token with --header 'Authorization: Bearer TOKEN', or noizu-mcp login {url}\n"
    assert err.endswith(f"; {hint}")


def test_a_token_that_is_refused_is_not_shown(serve, run):
    """A token in a header is shown neither in the error nor in the trace."""
    words = ("list", serve(auth=AUTH), "--trace", "--header", "Authorization: Bearer s3cret")
    status, out, err = run(*words)

    assert (status, out) == (1, "")
    assert "s3cret" not in err


def test_a_closed_port(run):
    """A server that does not exist is an error in one line."""
    status, _, err = run("list", "http://127.0.0.1:9/mcp")

    assert status == 1
    assert err.startswith("noizu-mcp: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("run", "http://127.0.0.1:8000/mcp"), STOP),
        (("run", "https://x/mcp", "--http"), STOP),
        (
            ("list", "ws://x/mcp"),
            "a URL must begin with http:// or https:// and a host: 'ws://x/mcp'",
        ),
        (
            ("list", "http://ada:s3cret@x/mcp"),
            "a URL must not contain credentials; put them into headers",
        ),
        (
            ("list", "demo.py", "--header", "a=b"),
            "--header goes with a URL; any other server sees no headers",
        ),
        (
            ("list", "--header", "a=b", "--", "cat"),
            "--header goes with a URL; any other server sees no headers",
        ),
        (
            ("list", "http://x/mcp", "--header", "s3cret"),
            "write headers as NAME=VALUE or 'NAME: VALUE', in ASCII",
        ),
        (
            ("list", "http://x/mcp", "--header", "a=b\nc: d"),
            "write headers as NAME=VALUE or 'NAME: VALUE', in ASCII",
        ),
    ],
)
def test_what_is_asked_wrongly(run, words, text):
    """One line says what to write, and contains no secret."""
    assert run(*words) == (2, "", f"noizu-mcp: {text}\n")


def test_headers_as_they_are_read(run):
    """The first separator ends the name; the last header of a name is used."""
    url = "https://mcp.example/mcp?key=s3cret"
    texts = ["X-A=1", "x-a: b=c:d", "X-B=k: v", "X-C="]
    headers = [word for text in texts for word in ("--header", text)]
    status, out, _ = run("config", "cursor", url, "--name", "x", *headers)

    assert status == 0
    entry = json.loads(out)["mcpServers"]["x"]
    assert entry == {"url": url, "headers": {"x-a": "b=c:d", "x-b": "k: v", "x-c": ""}}
    status, _, err = run("list", "https://a:b@mcp.example/mcp")
    assert status == 2
    assert "must not contain credentials" in err


def test_help_names_urls(run):
    """The help of each command that uses a server describes URLs and headers."""
    for words in (("--help",), ("list", "--help"), ("call", "--help")):
        status, out, _ = run(*words)
        assert status == 0
        assert "https://…, http://…      a server that runs elsewhere" in out
    assert "--header NAME=VALUE" in out
    assert "https://" not in run("run", "--help")[1].partition("over HTTP:")[0]

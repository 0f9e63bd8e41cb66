"""`noizu-mcp login` and `logout`, over real sockets: a user, an MCP server, and its issuer."""

import json
import threading
import urllib.request
import webbrowser
from concurrent.futures import Future
from contextlib import AsyncExitStack
from functools import partial

import pytest
import trio

from noizu_mcp import serve_http
from noizu_mcp.server import load_server
from noizu_mcp.testing import serve_authorization, serve_protected

SECURED = """
from demo import Demo
from noizu_mcp import Tool
from noizu_mcp.auth import RequireScopes

class Save(Tool, requires=RequireScopes("docs:write")):
    "Save something."
    def call(self, args):
        return "saved"

class Secured(Demo, name="secured", version="1"):
    tools = [Save]
"""


@pytest.fixture
def world(folder, monkeypatch):
    """Serve an authorization server and an MCP server that requires its tokens, in a thread."""
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    (folder / "secured.py").write_text(SECURED)
    ready, threads = Future(), []

    async def main():
        end = trio.Event()
        async with AsyncExitStack() as stack:
            login = await stack.enter_async_context(serve_authorization())
            auth_for = partial(login.auth_for, required_scopes=["docs:read"])
            server = load_server("secured.py")
            url = await stack.enter_async_context(serve_protected(server, auth_for))
            ready.set_result((login, url, end, trio.lowlevel.current_trio_token()))
            await end.wait()

    threads.append(threading.Thread(target=trio.run, args=(main,), daemon=True))
    threads[0].start()
    login, url, end, token = ready.result(60)

    def visit(place):
        """Act as browser and user: approve, and follow the redirect."""
        answer = login.open_browser(place)
        request = partial(urllib.request.urlopen, answer, timeout=60)
        threads.append(threading.Thread(target=lambda: request().read()))
        threads[-1].start()
        return True

    monkeypatch.setattr(webbrowser, "open", visit)
    login.visit = visit
    yield login, url
    token.run_sync_soon(end.set)
    for thread in threads:
        thread.join(60)


def test_a_person_logs_in_once(world, run):
    """Other commands use the login until it is deleted."""
    login, url = world
    status, _, err = run("list", url)
    assert status == 1
    assert (
        f"give a token with --header 'Authorization: Bearer TOKEN', or noizu-mcp login {url}" in err
    )

    findings = json.loads(run("doctor", "--json", url)[1])["findings"]
    assert [each["rule"] for each in findings] == ["token"]

    status, out, err = run("login", url)
    assert (status, out) == (0, f"logged in to secured; the other commands use it for {url}\n")
    assert err.startswith(f"noizu-mcp: to log in, open {login.issuer}/authorize?")
    assert run("list", url)[0] == 0
    assert json.loads(run("doctor", "--json", url)[1])["findings"] == []
    assert "save" in run("list", url)[1]

    assert run("logout", url) == (0, "logged out\n", "")
    assert run("list", url)[0] == 1
    assert run("logout", url) == (0, f"there is no login for {url}\n", "")
    assert len([each for each in login.requests if each.endpoint == "authorize"]) == 1


def test_a_scope_that_was_not_asked_for(world, run):
    """No other command begins a login: the error says how to log in again."""
    _, url = world
    run("login", url)
    status, _, err = run("call", url, "save")
    assert status == 1
    assert f"the login has ended, or lacks a scope; repeat: noizu-mcp login {url}" in err

    assert run("login", url, "--scope", "docs:read", "--scope", "docs:write")[0] == 0
    assert run("call", url, "save") == (0, "saved\n", "")


def test_a_token_in_a_header_comes_first(world, run):
    """The login is not used in addition to it."""
    login, url = world
    run("login", url)
    header = f"Authorization: Bearer {login.issue_token(url, scopes=['docs:read', 'docs:write'])}"
    assert run("call", url, "save", "--header", header) == (0, "saved\n", "")
    assert run("doctor", url, "--header", header, "--json")[0] == 0
    status, _, err = run("list", url, "--header", "Authorization: Bearer x")
    assert (status, True) == (1, "give a token with --header" in err)


def test_a_registered_client(world, run, monkeypatch):
    """Its id is an option, and its secret in the environment."""
    login, url = world
    login.add_client("cli", secret="s3cret")
    monkeypatch.setenv("NOIZU_MCP_CLIENT_SECRET", "s3cret")
    status, _, err = run("login", url, "--client-id", "cli")
    assert (status, "NOIZU_MCP_CLIENT_SECRET is set: give --issuer URL" in err) == (2, True)
    other = ("--issuer", "https://login.example.com")
    status, _, err = run("login", url, "--client-id", "cli", *other)
    assert (status, "the credentials belong to https://login.example.com" in err) == (1, True)
    assert {each.endpoint for each in login.requests} <= {"metadata"}
    assert run("login", url, "--client-id", "cli", "--issuer", login.issuer)[0] == 0
    assert run("list", url)[0] == 0
    assert [each for each in login.requests if each.endpoint == "register"] == []


def test_without_a_browser(world, run, monkeypatch):
    """The URL is printed on stderr, and the user opens it elsewhere."""
    login, url = world
    monkeypatch.setattr(webbrowser, "open", None)

    class Terminal:
        encoding = "utf-8"

        def write(self, text):
            if "to log in, open" in text:
                login.visit(text.split()[-1])

        def flush(self):
            pass

    monkeypatch.setattr("sys.stderr", Terminal())
    assert run("login", url, "--no-browser")[0] == 0


def test_a_person_who_declines(world, run):
    """The error is one line, with status 1."""
    login, url = world
    login._approve = lambda params: False
    status, out, err = run("login", url)
    assert (status, out) == (1, "")
    assert "access_denied" in err.splitlines()[-1]


def test_a_server_that_wants_no_login(run, monkeypatch, folder):
    """The command says so."""
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    ready = Future()

    async def main():
        async with trio.open_nursery() as nursery:
            host = await nursery.start(partial(serve_http, load_server("demo.py"), port=0))
            ready.set_result((host, trio.lowlevel.current_trio_token()))

    thread = threading.Thread(target=trio.run, args=(main,), daemon=True)
    thread.start()
    host, token = ready.result(60)
    assert run("login", f"{host.urls[0]}/mcp") == (0, "demo wants no login\n", "")
    token.run_sync_soon(host.stop)
    thread.join(60)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("login", "demo.py"), "give the URL of a server; servers on stdio need no login"),
        (("logout", "demo.py"), "give the URL of a server"),
        (("login", "http://x.example/mcp"), "https"),
        (("login", "https://x.example/mcp", "--scope", "a b"), "is not the name of a scope"),
    ],
)
def test_wrong_words(words, text, run):
    """Wrong arguments are reported in one line, with status 2."""
    status, out, err = run(*words)
    assert (status, out, True) == (2, "", text in err)


def test_a_store_that_cannot_be_read(run, monkeypatch, folder):
    """The error is one line."""
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    (folder / "data" / "noizu-mcp").mkdir(parents=True)
    (folder / "data" / "noizu-mcp" / "credentials.json").write_text("{")
    status, _, err = run("logout", "https://x.example/mcp")
    assert (status, True) == (1, "cannot be used" in err)


def test_no_tokens_without_tls(run, folder, monkeypatch):
    """A login is not used for a remote server on plain HTTP; the rest is checked all the same."""
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    (folder / "noizu-mcp").mkdir()
    (folder / "noizu-mcp" / "credentials.json").write_text("{}")
    # An address without a machine (RFC 5737).
    status, out, _ = run("doctor", "--json", "http://192.0.2.1/mcp", "--timeout", "0.05")
    rules = {each["rule"] for each in json.loads(out)["findings"]}
    assert (status, rules) == (1, {"start"})

"""`noizu-mcp doctor`: servers with one flaw each have exactly that finding."""

import importlib.util
import json
import re
import ssl
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from noizu_mcp import Limits, Stdio, serve_http
from noizu_mcp.check.doctor import RULES, Report, _checked_conversation, _lists, _report
from noizu_mcp.check.doctor._http_checks import check_transport, is_local
from noizu_mcp.check.raw import Exchange, _pipe, _web, fault_of
from noizu_mcp.cli._target import load_server

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).parent / "flawed.py"
# Without the site packages it starts in a few hundredths of a second.
COMMAND = ("--", sys.executable, "-S", "-E", str(SCRIPT))

_spec = importlib.util.spec_from_file_location("doctor_flawed", SCRIPT)
flawed = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(flawed)


@pytest.fixture
def examine(run):
    """Run the doctor; return its status, and the rules of its findings with their severities."""

    def examine(*words):
        status, out, err = run("doctor", "--json", *words)
        assert err == ""
        report = json.loads(out)
        return status, {(each["rule"], each["severity"]) for each in report["findings"]}, report

    return examine


# The findings of each flaw; a flaw without findings here is not one.
STDIO = {
    "none": set(),
    "stateless-only": set(),
    "no-templates": set(),
    "handshake-only": {("revision", "note")},
    "neither": {("start", "error")},
    "silent-probe": {("probe", "warning"), ("revision", "note")},
    "old": {("revision", "error")},
    "exits": {("start", "error")},
    "stdout": {("stdout", "error")},
    "bad-line": {("bad-line", "error")},
    "end-of-input": {("end-of-input", "warning")},
    "stubborn": {("end-of-input", "warning")},
    "no-jsonrpc": {("message", "error")},
    "two-outcomes": {("message", "error")},
    "no-json": {("message", "error")},
    "twice": {("message", "error")},
    "stray": {("message", "error")},
    "array": {("message", "error")},
    "silence": {("silence", "error"), ("bad-line", "error")},
    "uninvited": {("uninvited", "error")},
    "initialize": {("initialize", "error")},
    "discover": {("discover", "error")},
    "ping": {("ping", "error")},
    "unknown-method": {("unknown-method", "error")},
    "unknown-code": {("unknown-method", "warning")},
    "version": {("version", "error")},
    "envelope": {("envelope", "error")},
    "capabilities": {("capabilities", "error")},
    "undeclared": {("capabilities", "warning")},
    "result-fields": {("result-fields", "error")},
    "cursor-loop": {("pages", "error")},
    "cursor-type": {("pages", "error")},
    "endless-pages": set(),
    "lost-page": {("pages", "error")},
    "empty-discover": {("revision", "note")},
    "other-versions": {("revision", "note")},
    "no-info": set(),
    "null-cursor": {("pages", "note")},
    "cursor": {("cursor", "note")},
    "order": {("order", "warning")},
    "list": {("list", "error")},
    "list-type": {("list", "error")},
    "duplicates": {("duplicates", "error")},
    "tool-name": {("tool-name", "warning")},
    "tool-schema": {("tool-schema", "error")},
    "tool-root": {("tool-schema", "error")},
    "tool-header": {("tool-schema", "error")},
    "description": {("description", "note")},
    "uri": {("uri", "error")},
    "template": {("uri", "error")},
    "unknown-resource": {("unknown-resource", "warning")},
}
#: Flaws that need a timeout.
STAYING = ("end-of-input", "stubborn")
SLOW = {"silent-probe": "0.3", "silence": "0.3"}


@pytest.mark.parametrize("flaw", STDIO)
def test_a_flaw_on_stdio(flaw, examine, monkeypatch):
    """A server with one flaw has this finding only; the exit status is 1 for an error."""
    monkeypatch.setattr(_pipe, "EXIT_TIMEOUT", 0.3 if flaw in STAYING else 30)
    status, found, _ = examine("--timeout", SLOW.get(flaw, "30"), *COMMAND, flaw)

    assert found == STDIO[flaw]
    assert status == any(severity == "error" for _, severity in found)


CALLS = {
    "none": set(),
    "asks": set(),
    "call-failed": set(),
    "call": {("call", "error")},
    "call-error": {("call", "error")},
    "no-output": {("output", "error")},
    "output": {("output", "error")},
    "busy": {("busy", "warning")},
}


@pytest.mark.parametrize("flaw", CALLS)
def test_a_flaw_of_a_call(flaw, examine, monkeypatch):
    """With `--call` a tool is called once, and its result checked."""
    monkeypatch.setattr(_lists, "BUSY_TIMEOUT", 0.2 if flaw == "busy" else 30)
    words = ("--call", "add", "n=1", "--timeout", "30")

    assert examine(*words, *COMMAND, flaw)[1] == CALLS[flaw]


def test_a_call_of_a_tool_that_is_not_listed(examine):
    """It is called, since a server may hide it."""
    assert examine("--call", "hidden", *COMMAND, "none")[:2] == (0, set())


@contextmanager
def serving(flaw, documents=None):
    server = flawed.WebServer(flaw, documents)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


HTTP = {
    "none": set(),
    "stateless-only": set(),
    "events": set(),
    "no-session": set(),
    "no-delete": set(),
    "handshake-only": {("revision", "note")},
    "origin": {("origin", "error")},
    "host": {("host", "warning")},
    # A page of another site can call, and read the response.
    "cors": {("origin", "error"), ("cors", "warning"), ("cors-headers", "warning")},
    "cors-exposed": {("origin", "error"), ("cors", "warning")},
    "redirect": {("redirect", "warning")},
    "redirect-loop": {("redirect", "warning"), ("start", "error")},
    "redirect-away": {("redirect", "warning"), ("start", "error")},
    "broken": {("start", "error")},
    "content-type": {("content-type", "error"), ("silence", "error")},
    "notification-status": {("notification-status", "error")},
    "get": {("get", "error")},
    "version-header": {("version-header", "error")},
    "session-id": {("session-id", "error")},
    "session-secret": {("session-secret", "warning")},
    "session-unknown": {("session-unknown", "error"), ("session-end", "error")},
    "session-missing": {("session-missing", "warning")},
    "session-end": {("session-end", "error")},
    "delete": {("session-end", "error")},
    "headers": {("headers", "error")},
    "status": {("status", "error")},
}


@pytest.mark.parametrize("flaw", HTTP)
def test_a_flaw_over_http(flaw, examine):
    """A server at a URL with one flaw has this finding only."""
    with serving(flaw) as server:
        status, found, _ = examine(f"{server.origin}/mcp", "--timeout", "30")

    assert found == HTTP[flaw]
    assert status == any(severity == "error" for _, severity in found)


RESOURCE = "/.well-known/oauth-protected-resource"
ISSUER = "/.well-known/oauth-authorization-server"
TOKEN = ("token", "note")


def documents_of(origin):
    """Return the metadata of a server without flaws."""
    return {
        "challenge": f'Bearer resource_metadata="{origin}{RESOURCE}/mcp"',
        f"{RESOURCE}/mcp": {"resource": f"{origin}/mcp", "authorization_servers": [origin]},
        ISSUER: {
            "issuer": origin,
            "authorization_endpoint": f"{origin}/a",
            "token_endpoint": f"{origin}/t",
            "registration_endpoint": f"{origin}/r",
            "code_challenge_methods_supported": ["S256"],
        },
    }


def changed(path, **members):
    return lambda documents, _: {**documents, path: {**documents[path], **members}}


def at_the_root(documents, origin):
    """The metadata is at the root, and the challenge does not say so."""
    found = {**documents, RESOURCE: {**documents[f"{RESOURCE}/mcp"], "resource": origin}}
    del found[f"{RESOURCE}/mcp"]
    return {**found, "challenge": "Bearer"}


def with_a_path(documents, origin):
    """The issuer has a path, and OpenID metadata below it."""
    place = "/realm/.well-known/openid-configuration"
    found = changed(f"{RESOURCE}/mcp", authorization_servers=[f"{origin}/realm"])(documents, origin)
    known = {"client_id_metadata_document_supported": True}
    moved = {**found.pop(ISSUER), "issuer": f"{origin}/realm", **known}
    del moved["registration_endpoint"]
    return {**found, place: moved}


def without(path):
    return lambda documents, _: {key: each for key, each in documents.items() if key != path}


def challenged(text):
    return lambda documents, _: {**documents, "challenge": text}


AUTHORIZATION = [
    (lambda documents, _: documents, set()),
    (at_the_root, set()),
    (with_a_path, set()),
    (without("challenge"), {"challenge"}),
    (challenged('Bearer "'), {"challenge"}),
    (challenged("Basic realm=x"), {"challenge"}),
    (challenged('Bearer resource_metadata="file:///etc/passwd"'), {"resource-metadata"}),
    (without(f"{RESOURCE}/mcp"), {"resource-metadata"}),
    (changed(f"{RESOURCE}/mcp", resource="https://elsewhere"), {"resource"}),
    (changed(f"{RESOURCE}/mcp", resource=1), {"resource"}),
    (changed(f"{RESOURCE}/mcp", authorization_servers="x"), {"authorization-server"}),
    (without(ISSUER), {"authorization-server"}),
    (changed(ISSUER, issuer="https://elsewhere"), {"authorization-server"}),
    (changed(ISSUER, token_endpoint=None), {"authorization-server"}),
    (changed(ISSUER, code_challenge_methods_supported=["plain"]), {"pkce"}),
    (changed(ISSUER, registration_endpoint=None), {"registration"}),
]


@pytest.mark.parametrize(("change", "rules"), AUTHORIZATION)
def test_a_server_that_wants_a_token(change, rules, examine):
    """Discovery is followed up to the token, and each gap in it found."""
    with serving("none", {}) as server:
        server.documents = change(documents_of(server.origin), server.origin)
        status, found, report = examine(f"{server.origin}/mcp")

    assert report["facts"]["revisions"] == "unknown without a token"
    assert {rule for rule, _ in found} == {"token", *rules}
    assert status == bool(rules - {"registration"})


def test_metadata_that_is_no_json(examine):
    """It counts as missing."""
    with serving("none", {}) as server:
        documents = documents_of(server.origin)
        server.documents = {**documents, f"{RESOURCE}/mcp": b"{oops"}
        _, found, _ = examine(f"{server.origin}/mcp")

    assert ("resource-metadata", "error") in found


def test_a_public_server_may_serve_every_site(examine, monkeypatch):
    """On the internet an unknown origin is a warning, and the Host header does not matter."""
    monkeypatch.setattr("noizu_mcp.check.doctor._http_checks.is_local", lambda _: False)
    with serving("cors") as server:
        _, found, _ = examine(f"{server.origin}/mcp")

    assert found == {("origin", "warning"), ("tls", "error"), ("cors-headers", "warning")}


async def test_a_server_that_is_gone():
    """If a message ends the server, that is its answer."""
    report = Report()
    async with _pipe.open_pipe(Stdio(*COMMAND[1:], "none"), report) as link:
        await link.end()
        found = await link.exchange({"id": 1, "method": "ping"}, {}, 30)

    assert (found.ended, found.seen) == (True, "the process ended")


def test_a_token_opens_the_rest(examine):
    """With a token everything is checked; the header is sent to this server only."""
    with serving("none", {}) as server:
        words = (f"{server.origin}/mcp", "--header", "Authorization: Bearer x")
        assert examine(*words)[:2] == (0, set())


@pytest.mark.parametrize("place", ["https://127.0.0.1/x", "http://10.0.0.1/x"])
def test_private_addresses_stay_private(place, examine, monkeypatch):
    """A remote server cannot make this program connect to a private network."""
    monkeypatch.setattr("noizu_mcp.check.doctor._authorization.is_local", lambda url: url == place)
    with serving("none", {}) as server:
        server.documents = {"challenge": f'Bearer resource_metadata="{place}"'}
        _, found, report = examine(f"{server.origin}/mcp")

    assert ("resource-metadata", "error") in found
    assert f"{place} is in a private network" in str(report)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:1/", True),
        ("http://a.localhost/", True),
        ("http://[::1]/", True),
        ("http://192.168.0.1/", True),
        ("https://example.com/", False),
        ("http://93.184.215.14/", False),
    ],
)
def test_local_addresses(url, local):
    """Loopback and private addresses are distinguished from public ones."""
    assert is_local(url) == local


@pytest.mark.parametrize(("days", "holds"), [(1, False), (100, True)])
def test_a_certificate_that_ends(days, holds):
    """A certificate is reported two weeks before it expires."""

    class Link:
        url = "https://example.com/mcp"
        certificate_end = time.time() + days * 86400

    report = Report()
    check_transport(Link(), report)
    assert [each.rule for each in report.findings] == ([] if holds else ["certificate"])


def test_the_end_of_a_certificate_is_read():
    """The expiry date comes from the connection."""

    class Tls:
        def getpeercert(self):
            return {"notAfter": "Jan  5 09:34:43 2027 GMT"}

    class Stream:
        def get_extra_info(self, name):
            assert name == "ssl_object"
            return Tls()

    class Response:
        extensions = {"network_stream": Stream()}

    link = _web.WebLink.__new__(_web.WebLink)
    link._look_at_tls(Response())
    assert link.certificate_end == ssl.cert_time_to_seconds("Jan  5 09:34:43 2027 GMT")


def test_plain_http_elsewhere():
    """Plain HTTP to a server on the internet is an error."""

    class Link:
        url = "http://example.com/mcp"
        certificate_end = None

    report = Report()
    check_transport(Link(), report)
    assert report.failed


@pytest.mark.parametrize(
    ("flaw", "path", "text"),
    [
        ("sse", "/mcp", "HTTP 405; GET opens an event stream, as in the transport HTTP+SSE"),
        ("none", "/", "HTTP 404; there may be a server at {origin}/mcp"),
        ("sse", "", "HTTP 404"),
        ("none", "/elsewhere", "HTTP 404"),
    ],
)
def test_a_server_at_another_place(flaw, path, text, examine):
    """If a URL has no server, the finding suggests another URL with one."""
    with serving(flaw) as server:
        status, found, report = examine(f"{server.origin}{path}")

    assert (status, found) == (1, {("start", "error")})
    seen = report["findings"][0]["seen"]
    assert seen.startswith(text.format(origin=server.origin))
    assert ("; " in seen) == ("; " in text)


def test_a_closed_port(examine):
    """A port without a server is one finding."""
    with serving("none") as server:
        pass
    status, found, _ = examine(f"{server.origin}/mcp")
    assert (status, found) == (1, {("start", "error")})


def test_a_command_that_does_not_exist(examine):
    """It is a finding of the start."""
    assert examine("--", "no-such-command")[:2] == (1, {("start", "error")})
    status, found, report = examine("--", str(SCRIPT.parent))
    assert (status, found) == (1, {("start", "error")})
    assert "not found" in report["findings"][0]["seen"]


def test_a_program_that_cannot_run(examine, tmp_path):
    """An error of the system is a finding of the start, too."""
    (tmp_path / "program").write_text("#!/no/such/interpreter\n")
    (tmp_path / "program").chmod(0o755)
    assert examine("--", str(tmp_path / "program"))[:2] == (1, {("start", "error")})


def test_a_silent_server_over_http(examine, monkeypatch):
    """A response that does not arrive in time is a finding of the start."""
    monkeypatch.setattr(_checked_conversation, "PROBE_TIMEOUT", 0.2)
    monkeypatch.setattr(flawed.Web, "do_POST", lambda self: self.server.shutdown_request)
    with serving("none") as server:
        status, found, report = examine(f"{server.origin}/mcp", "--timeout", "0.2")
    assert status == 1
    assert ("start", "error") in found
    [start] = [each for each in report["findings"] if each["rule"] == "start"]
    assert "no answer within 0.2 s" in start["seen"]


def test_a_list_that_is_too_large(examine, monkeypatch):
    """It is read up to the limits of a list."""
    monkeypatch.setattr(_lists, "LIMITS", Limits(list_size=1000))
    status, found, out = examine(*COMMAND, "endless-pages")

    assert (status, found) == (1, {("pages", "error")})
    assert "tools/list has more than 1000 bytes" in str(out)


def test_answers_without_end(examine, monkeypatch):
    """A response is read up to a limit only."""
    monkeypatch.setattr(_web, "MAX_BODY", 10)
    with serving("none") as server:
        assert examine(f"{server.origin}/mcp")[0] == 1
    monkeypatch.setattr(_pipe, "MAX_LINE", 10_000)
    monkeypatch.setattr(_pipe, "EXIT_TIMEOUT", 0.3)
    _, found, _ = examine(*COMMAND, "endless")
    assert ("message", "error") in found


def test_a_target_in_python(examine, tmp_path):
    """It is started as a host would start it."""
    status, found, out = examine(str(tmp_path / "missing.py"))

    assert (status, found) == (1, {("start", "error")})
    assert "missing.py" in out["findings"][0]["seen"]


@pytest.mark.slow
@pytest.mark.parametrize("example", ["everything.py", "weather.py", "resources.py", "prompts.py"])
def test_our_own_servers_are_well(example, examine):
    """Examples of the documentation have no findings."""
    target = str(ROOT / "docs" / "examples" / example)
    assert examine(target, "--timeout", "30")[:2] == (0, set())


@pytest.fixture
def serve_demo(folder):
    """Serve the example `everything.py` on the host of the package; yields its URL."""
    started = Future()

    async def main():
        server = load_server(str(ROOT / "docs" / "examples" / "everything.py"))
        async with trio.open_nursery() as nursery:
            host = await nursery.start(partial(serve_http, server, port=0))
            started.set_result((host, trio.lowlevel.current_trio_token()))

    thread = threading.Thread(target=trio.run, args=(main,), daemon=True)
    thread.start()
    host, token = started.result(60)
    yield f"{host.urls[0]}/mcp"
    token.run_sync_soon(host.stop)
    thread.join(60)


def test_our_own_server_over_http_is_well(examine, serve_demo):
    """A server on its own host has no findings."""
    assert examine(serve_demo, "--timeout", "30")[:2] == (0, set())


def test_the_report_for_people(run):
    """The report has facts, then what was sent and received, and what to do."""
    status, out, err = run("doctor", *COMMAND, "tool-schema")

    assert (status, err) == (1, "")
    lines = out.splitlines()
    assert "server     flawed 1" in lines
    assert "revisions  2026-07-28, 2025-11-25" in lines
    assert "lists      1 tool, 1 resource, 1 template" in lines
    at = lines.index("ERROR  tool-schema")
    assert lines[at + 1] == "  sent  tools/list (2025-11-25)"
    assert lines[at + 2].startswith("  seen  inputSchema of add: ")
    assert lines[at + 3].startswith("  do    make the schema valid JSON Schema")
    assert lines[-1].endswith(" rules checked, 24 hold")


def test_a_report_stays_short():
    """Equal faults are merged, findings of one rule are limited, and quotations are cut."""
    report = Report()
    for number in range(20):
        report.check("message", False, "x", "y" * 1000 if number < 2 else number)
    assert len(report.findings) == _report.MAX_SAME
    assert len(report.findings[0].seen) == _report.MAX_QUOTED


@pytest.mark.parametrize(
    "message",
    [
        [],
        {"jsonrpc": "1.0"},
        {"jsonrpc": "2.0", "method": 1},
        {"jsonrpc": "2.0", "method": "a", "params": []},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": 1},
        {"jsonrpc": "2.0", "id": 1, "error": 1},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": True, "message": ""}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}},
    ],
)
def test_messages_with_faults(message):
    """A value that is not a JSON-RPC 2.0 message has a fault in words."""
    assert fault_of(message)


def test_messages_without_faults():
    """Requests, notifications, results and errors have no faults."""
    head = {"jsonrpc": "2.0"}
    assert fault_of({**head, "id": 1, "method": "a", "params": {}}) is None
    assert fault_of({**head, "id": 1, "result": {}}) is None
    assert fault_of({**head, "error": {"code": 1, "message": ""}}) is None


def test_an_exchange_without_an_answer():
    """The text says so, with the reason if there is one."""
    assert Exchange("x").seen == "no answer"
    assert Exchange("x", status=500, body=b"oops").seen == "HTTP 500 oops"
    assert Exchange("x", status=202).seen == "HTTP 202"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("demo.py", "--header", "a=b"), "--header goes with a URL"),
        (("demo.py", "a=b"), "arguments go with --call NAME"),
        (("http://",), "a URL must begin"),
    ],
)
def test_wrong_words(words, text, run):
    """Wrong arguments are reported in one line, with status 2."""
    status, _, err = run("doctor", *words)
    assert (status, True) == (2, text in err)


def test_without_the_library_for_http(run, monkeypatch):
    """The error names the extra."""
    monkeypatch.setitem(sys.modules, "httpx2", None)
    status, _, err = run("doctor", "http://127.0.0.1:1/mcp")
    assert (status, True) == (1, "pip install 'noizu-mcp[http]'" in err)


def test_the_page_has_every_rule():
    """The table of the documentation is the same as in the program."""
    page = (ROOT / "docs" / "how-to" / "doctor.md").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {rule.severity} | {rule.remedy} |" for name, rule in RULES.items()]

    assert re.findall(r"^\| `.*", page.partition("## The rules")[2], re.MULTILINE) == rows


def test_every_rule_is_broken_by_a_test():
    """A rule without a test might hold always, or never."""
    tables = [*STDIO.values(), *HTTP.values(), *CALLS.values()]
    broken = {rule for table in tables for rule, _ in table}
    broken |= {rule for _, rules in AUTHORIZATION for rule in rules}

    assert set(RULES) - broken == {"token", "tls", "certificate"}

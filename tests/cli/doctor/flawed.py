"""A small server with one flaw: `python flawed.py FLAW`, or over HTTP in a thread.

It imports nothing of the package, so that a fault of the package cannot hide a check.
"""

import json
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STATELESS = "2026-07-28"
HANDSHAKE = "2025-11-25"
META = "io.modelcontextprotocol/"
TOOL = {
    "name": "add",
    "description": "Add.",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
}
CAPABILITIES = {"tools": {}, "resources": {}}
INFO = {"name": "flawed", "version": "1"}
#: Changes of a list by the name of a flaw.
TOOLS = {
    "duplicates": [TOOL, TOOL],
    "tool-name": [{**TOOL, "name": "add!"}],
    "tool-schema": [{**TOOL, "inputSchema": {"type": "objekt"}}],
    "tool-root": [{**TOOL, "inputSchema": {}}],
    "tool-header": [
        {**TOOL, "inputSchema": {"type": "object", "properties": {"a": {"x-mcp-header": ""}}}}
    ],
    "description": [{**TOOL, "description": " "}],
    "list": [{"name": "add"}],
    "list-type": "add",
    "output": [{**TOOL, "outputSchema": {"type": "object", "required": ["m"]}}],
}
#: What is written before the answer to a ping, by the name of a flaw.
BEFORE_PING = {
    "uninvited": '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    '{"jsonrpc": "2.0", "id": 2, "method": "roots/list"}\n',
    "no-json": "{oops\n",
    "endless": "{" * 200_000,
    "stray": '{"jsonrpc": "2.0", "id": 7, "result": {}}\n',
    "array": '[{"jsonrpc": "2.0", "method": "notifications/message"}]\n',
}
UNREADABLE = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}}


class Refusal(Exception):
    """An error response: its code and data."""


class Flawed:
    """The server; `flaw` is the name of its flaw."""

    def __init__(self, flaw):
        self.flaw = flaw
        self.listed = 0

    def answer(self, message):
        """Answer one message; return None without an answer."""
        method, id_ = message.get("method"), message.get("id")
        if id_ is None or method is None:
            return None
        params = message.get("params", {})
        meta = params.get("_meta", {})
        stateless = META + "protocolVersion" in meta
        head = {"jsonrpc": "2.0", "id": id_}
        if self.flaw == "no-jsonrpc" and method == "ping":
            head = {"id": id_}
        try:
            result = self.stateless(method, params) if stateless else self.legacy(method, params)
        except Refusal as refusal:
            code, data = refusal.args
            return {**head, "error": {"code": code, "message": "no", "data": data}}
        if self.flaw == "two-outcomes" and method == "ping":
            return {**head, "result": {}, "error": {"code": 1, "message": "no"}}
        return None if result is None else {**head, "result": result}

    def stateless(self, method, params):
        flaw, meta = self.flaw, params["_meta"]
        if flaw == "silent-probe":
            return None
        if flaw in ("handshake-only", "old", "neither"):
            raise Refusal(-32601, None)
        version = meta[META + "protocolVersion"]
        if version != STATELESS and flaw != "version":
            raise Refusal(-32022, {"supported": [STATELESS, HANDSHAKE], "requested": version})
        if META + "clientCapabilities" not in meta and flaw != "envelope":
            raise Refusal(-32602, None)
        full = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if flaw == "result-fields":
            full = {"resultType": "done", "ttlMs": -1, "cacheScope": "all"}
        if method == "server/discover":
            capabilities = [] if flaw == "discover" else CAPABILITIES
            versions = [STATELESS, 1] if flaw == "discover" else [STATELESS, HANDSHAKE]
            info = {"name": 1} if flaw == "discover" else INFO
            found = {"supportedVersions": versions, "capabilities": capabilities}
            if flaw == "empty-discover":
                return {}
            if flaw == "other-versions":
                found["supportedVersions"] = ["2099-01-01"]
            if flaw == "no-info":
                return {**full, **found}
            return {**full, **found, "_meta": {META + "serverInfo": info}}
        return {**full, **self.common(method, params, -32602)}

    def legacy(self, method, params):
        flaw = self.flaw
        if flaw == "stateless-only":
            raise Refusal(-32022, {"supported": [STATELESS]})
        if flaw == "neither":
            raise Refusal(-32000, None)
        if method == "initialize":
            version = "2024-11-05" if flaw == "old" else HANDSHAKE
            found = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO}
            if flaw == "initialize":
                found = {"protocolVersion": 1, "capabilities": []}
            if flaw == "capabilities":
                found["capabilities"] = {**CAPABILITIES, "prompts": {}}
            if flaw == "undeclared":
                found["capabilities"] = {"resources": {}}
            return found
        if method == "ping":
            if flaw == "ping":
                raise Refusal(-32601, None)
            return None if flaw == "silence" else {}
        return self.common(method, params, -32002)

    def common(self, method, params, missing):
        flaw = self.flaw
        if method == "tools/list":
            return self.tools(params.get("cursor"))
        if method == "resources/list":
            uri = "not a uri" if flaw == "uri" else "a://b"
            return {"resources": [{"name": "b", "uri": uri}]}
        if method == "resources/templates/list":
            if flaw == "no-templates":
                raise Refusal(-32601, None)
            template = "a://{" if flaw == "template" else "a://{b}"
            return {"resourceTemplates": [{"name": "b", "uriTemplate": template}]}
        if method == "resources/read":
            if flaw == "unknown-resource":
                return {"contents": []}
            raise Refusal(missing, None)
        if method == "tools/call":
            return self.call()
        if flaw == "unknown-method":
            return {}
        raise Refusal(-32603 if flaw == "unknown-code" else -32601, None)

    def tools(self, cursor):
        flaw = self.flaw
        if flaw == "cursor-loop" and cursor in (None, "again"):
            return {"tools": [], "nextCursor": "again"}
        if flaw == "endless-pages" and cursor != "noizu-mcp-doctor":
            self.listed += 1
            return {"tools": [], "nextCursor": f"{self.listed}"}
        if cursor not in (None, "two") and flaw != "cursor":
            raise Refusal(-32602, None)
        tools = TOOLS.get(flaw, [TOOL])
        if cursor == "two":
            return {"tools": [{**TOOL, "name": "two"}]}
        if flaw == "order":
            self.listed += 1
            other = {**TOOL, "name": "sub"}
            tools = [TOOL, other] if self.listed % 2 else [other, TOOL]
        next_cursors = {"lost-page": "lost", "null-cursor": None, "cursor-type": 2, "none": "two"}
        rest = {"nextCursor": next_cursors[flaw]} if flaw in next_cursors else {}
        return {"tools": tools, **rest}

    def call(self):
        flaw = self.flaw
        if flaw == "call-error":
            raise Refusal(-32603, None)
        if flaw == "call":
            return {"content": "text"}
        if flaw == "asks":
            return {"resultType": "input_required", "requestState": "x"}
        structured = {} if flaw == "no-output" else {"structuredContent": {"n": 1}}
        return {"content": [], **structured, "isError": flaw == "call-failed"}


def before_answer(flaw, message, write, server):
    """Do what the flaw does between a message and its answer."""
    method = message.get("method")
    if method == "ping":
        sys.stdout.write(BEFORE_PING.get(flaw, ""))
        if flaw == "twice":
            write(server.answer(message))
    if flaw == "busy" and method == "tools/call":
        time.sleep(1)


def serve_stdio(flaw):
    """Serve on stdin and stdout."""

    def write(message):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    server = Flawed(flaw)
    if flaw == "stdout":
        sys.stdout.write("Starting up\n\n")
    if flaw == "exits":
        sys.exit("no key is set")
    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            if flaw == "bad-line":
                raise
            write(UNREADABLE)
            continue
        before_answer(flaw, message, write, server)
        answer = server.answer(message)
        if answer is not None:
            write(answer)
    if flaw == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if flaw in ("end-of-input", "stubborn"):
        threading.Event().wait()


class Web(BaseHTTPRequestHandler):
    """One HTTP request to a server whose flaw is in `server.flaw`."""

    protocol_version = "HTTP/1.1"
    # An answer in two packets would wait for an acknowledgement in between.
    wbufsize = 65536

    def log_message(self, *args):
        pass

    def reply(self, status, message=None, **headers):
        flaw = self.server.flaw
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        body = b"" if message is None else body
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if flaw.startswith("cors"):
            self.send_header("Access-Control-Allow-Origin", "*")
            if flaw == "cors-exposed":
                self.send_header("Access-Control-Expose-Headers", "Mcp-Session-Id")
        if message is not None and "Content_Type" not in headers:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def is_refused(self):
        """Check the caller; return True if the response is written."""
        flaw, headers = self.server.flaw, self.headers
        host = headers["Host"].partition(":")[0]
        origin = headers.get("Origin", "http://127.0.0.1")
        if host != "127.0.0.1" and flaw != "host":
            self.reply(421)
        elif origin != "http://127.0.0.1" and flaw != "origin" and not flaw.startswith("cors"):
            self.reply(403)
        elif self.server.documents is not None and "Authorization" not in headers:
            challenge = self.server.documents.get("challenge")
            self.reply(401, **({"WWW_Authenticate": challenge} if challenge else {}))
        else:
            return False
        return True

    def do_OPTIONS(self):
        self.reply(204 if self.server.flaw.startswith("cors") else 405)

    def do_GET(self):
        documents = self.server.documents or {}
        if self.path in documents:
            self.reply(200, documents[self.path])
        elif self.path not in ("/mcp", "/moved"):
            self.reply(404)
        elif self.server.flaw == "sse":
            self.reply(200, b"event: endpoint", Content_Type="text/event-stream; charset=utf-8")
        elif not self.is_refused():
            self.reply(200 if self.server.flaw == "get" else 405)

    def do_DELETE(self):
        flaw, sessions = self.server.flaw, self.server.sessions
        if flaw == "no-delete":
            self.reply(405)
            return
        if flaw != "session-end":
            sessions.discard(self.headers.get("Mcp-Session-Id"))
        self.reply(500 if flaw == "delete" else 200)

    def do_POST(self):
        flaw, headers = self.server.flaw, self.headers
        message = json.loads(self.rfile.read(int(headers["Content-Length"])))
        if flaw == "redirect-loop":
            self.reply(307, Location="/mcp")
        elif flaw == "redirect" and self.path != "/moved":
            self.reply(307, Location="/moved")
        elif flaw == "redirect-away":
            self.reply(308, Location="https://elsewhere.invalid/mcp")
        elif flaw == "sse" or self.path not in ("/mcp", "/moved"):
            self.reply(405 if self.path == "/mcp" else 404)
        elif flaw == "broken":
            self.reply(500, "oops", Content_Type="text/plain")
        elif not self.is_refused():
            stateless = "_meta" in message.get("params", {})
            (self.stateless if stateless else self.legacy)(message)

    def legacy(self, message):
        flaw, headers, sessions = self.server.flaw, self.headers, self.server.sessions
        session = headers.get("Mcp-Session-Id")
        if message["method"] == "initialize":
            names = {"session-id": "\u00e9" * 32, "session-secret": "1"}
            if flaw == "no-session":
                self.send(message)
                return
            new = names.get(flaw, f"{len(sessions):032x}")
            sessions.add(new)
            self.send(message, Mcp_Session_Id=new)
        elif (headers.get("MCP-Protocol-Version") != HANDSHAKE and flaw != "version-header") or (
            session is None and flaw not in ("session-missing", "no-session")
        ):
            self.reply(400)
        elif session is not None and session not in sessions and flaw != "session-unknown":
            self.reply(404)
        elif "id" not in message:
            self.reply(200 if flaw == "notification-status" else 202)
        else:
            self.send(message)

    def stateless(self, message):
        flaw = self.server.flaw
        if self.headers["Mcp-Method"] != message["method"] and flaw != "headers":
            error = {"code": -32020, "message": "Mcp-Method differs"}
            self.reply(400, {"jsonrpc": "2.0", "id": message["id"], "error": error})
            return
        self.send(message)

    def send(self, message, **headers):
        flaw = self.server.flaw
        answer = Flawed(flaw).answer(message)
        code = answer.get("error", {}).get("code")
        # Up to 2025-11-25 an error is an answer like any other.
        statuses = {-32601: 404, -32602: 400, -32022: 400} if "_meta" in str(message) else {}
        status = 200 if flaw == "status" else statuses.get(code, 200)
        if flaw == "content-type" and message["method"] == "ping":
            self.reply(status, answer, Content_Type="text/plain", **headers)
        elif flaw == "events" and message["method"] != "initialize":
            # More than one read returns.
            text = f": {'-' * 500_000}\r\n\r\ndata: {json.dumps(answer)}\r\n\r\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(text)
        else:
            self.reply(status, answer, **headers)


class WebServer(ThreadingHTTPServer):
    """The server on a free port; `documents` are served by GET, and make it require a token."""

    daemon_threads = True

    def __init__(self, flaw, documents=None):
        self.flaw = flaw
        self.documents = documents
        self.sessions = set()
        super().__init__(("127.0.0.1", 0), Web)

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


if __name__ == "__main__":
    serve_stdio(sys.argv[1])

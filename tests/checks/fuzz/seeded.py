"""A small server with one fault: `python seeded.py FAULT`. It speaks both eras over stdio.

It imports nothing of the package, so that a fault of the package cannot hide one of the server; and
its arguments are checked by the few lines below.
"""

import json
import random
import sys
import threading
import traceback

STATELESS = "2026-07-28"
HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26")
META = "io.modelcontextprotocol/"
INFO = {"name": "seeded", "version": "1"}
ADD = {
    "name": "add",
    "description": "Add numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "numbers": {"type": "array", "items": {"type": "integer"}, "maxItems": 4},
            "times": {"type": "integer", "minimum": 1, "maximum": 10},
        },
        "required": ["numbers", "times"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
    },
    "annotations": {"readOnlyHint": True},
}
SAY = {
    "name": "say",
    "description": "Say a text.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "tone": {"type": "string", "enum": ["calm", "loud"]},
        },
        "required": ["text"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True},
}
KEEP = {
    "name": "keep_note",
    "description": "Keep a note.",
    "inputSchema": {
        "type": "object",
        "properties": {"title": {"type": "string", "minLength": 1, "maxLength": 20}},
        "required": ["title"],
        "additionalProperties": False,
    },
    "annotations": {"destructiveHint": False},
}
DROP = {**KEEP, "name": "drop_note", "description": "Drop a note."}
READ = {**KEEP, "name": "read_note", "description": "Read a note."}
WAIT = {
    "name": "wait",
    "description": "Wait for a while.",
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
    "annotations": {"readOnlyHint": True},
}
TOOLS = {tool["name"]: tool for tool in (ADD, SAY, KEEP, DROP, READ)}


class Refusal(Exception):
    """An error response: its code and its message."""


class Seeded:
    """The server; `fault` is the name of its fault."""

    def __init__(self, fault):
        self.fault = fault
        self.notes = {}
        self.tools = dict(TOOLS)
        if fault == "cancel":
            self.tools["wait"] = WAIT
        self.cancelled = set()
        self.takes_lists = False
        self.writing = threading.Lock()

    def write(self, message):
        with self.writing:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def write_later(self, seconds, message):
        threading.Timer(seconds, self.write, [message]).start()

    def hang(self):
        threading.Event().wait()

    def receive(self, line):
        """Handle one line."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self.write(self.error(None, -32700, "no JSON"))
            return
        if self.fault == "fragile" and isinstance(message, list):
            sys.exit(1)
        is_list = self.takes_lists and isinstance(message, list) and self.fault != "lists"
        for each in message if is_list else [message]:
            self.take(each)

    def take(self, message):
        """Answer one message."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self.write(self.error(None, -32600, "no message"))
            return
        id_, method, params = message.get("id"), message.get("method"), message.get("params", {})
        if method is None or "id" not in message:
            self.notice(method, params)
            return
        if not isinstance(id_, str | int) or not isinstance(method, str):
            self.write(self.error(None, -32600, "no request"))
            return
        if not isinstance(params, dict):
            self.write(self.error(id_, -32602, "params are an object"))
            return
        self.respond(id_, method, params)

    def respond(self, id_, method, params):
        if method == "tools/call" and params.get("name") == "wait" and "wait" in self.tools:
            self.write_later(0.4, self.result(id_, params, self.text("done")))
            return
        try:
            answer = self.result(id_, params, self.answer(method, params))
        except Refusal as refusal:
            answer = self.error(id_, *refusal.args)
        except Exception as error:
            text = traceback.format_exc() if self.fault == "leak" else str(error)
            answer = self.result(id_, params, {**self.text(text), "isError": True})
        self.write(answer)
        if self.fault == "twice" and method == "tools/call" and params.get("name") == "say":
            self.write(answer)

    def notice(self, method, params):
        if method == "notifications/cancelled" and isinstance(params, dict):
            self.cancelled.add(str(params.get("requestId")))

    @staticmethod
    def error(id_, code, text):
        return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": text}}

    @staticmethod
    def text(text):
        return {"content": [{"type": "text", "text": text}]}

    @staticmethod
    def is_stateless(params):
        return META + "protocolVersion" in params.get("_meta", {})

    def result(self, id_, params, result):
        if self.is_stateless(params):
            result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
        return {"jsonrpc": "2.0", "id": id_, "result": result}

    def answer(self, method, params):
        capabilities = {"tools": {"listChanged": True}}
        if method == "initialize":
            asked = params.get("protocolVersion")
            if self.fault == "older" and asked == "2025-06-18":
                raise Refusal(-32602, "no such revision")
            self.takes_lists = asked == "2025-03-26"
            return {
                "protocolVersion": asked if asked in HANDSHAKES else HANDSHAKES[0],
                "capabilities": capabilities,
                "serverInfo": INFO,
            }
        if method == "server/discover":
            return {
                "supportedVersions": [STATELESS],
                "capabilities": capabilities,
                "_meta": {META + "serverInfo": INFO},
            }
        if method == "ping":
            return {}
        if method == "tools/list":
            return self.list_tools(params)
        if method == "tools/call":
            return self.call(params)
        raise Refusal(-32601, "no such method")

    def list_tools(self, params):
        tools = list(self.tools.values())
        cursor = params.get("cursor")
        if cursor is not None and (self.fault != "cursors" or cursor != "more"):
            raise Refusal(-32602, "no such cursor")
        if self.fault == "order":
            random.shuffle(tools)
        if self.fault == "cursors":
            return {"tools": [tools[0]], "nextCursor": "more"}
        return {"tools": tools}

    def call(self, params):
        name, arguments = params.get("name"), params.get("arguments", {})
        tool = self.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise Refusal(-32602, "no such tool")
        if not self.fits(tool, arguments):
            raise Refusal(-32602, "the arguments do not fit")
        return getattr(self, name)(**arguments, stateless=self.is_stateless(params))

    def fits(self, tool, arguments):
        """Check arguments: the few keywords of the schemas above."""
        schema = tool["inputSchema"]
        known = schema["properties"]
        if not isinstance(arguments, dict) or not arguments.keys() <= known.keys():
            return False
        if not arguments.keys() >= set(schema.get("required", ())):
            return False
        return all(self.fits_one(known[name], value) for name, value in arguments.items())

    def fits_one(self, schema, value):
        kind = {"string": str, "integer": int, "array": list}[schema["type"]]
        if kind is int and isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, kind) or isinstance(value, bool):
            return False
        if kind is list:
            fits = all(self.fits_one(schema["items"], each) for each in value)
            return fits and (self.fault == "max-items" or len(value) <= schema["maxItems"])
        if kind is int:
            high = schema.get("maximum", value) + (self.fault == "bound")
            return schema.get("minimum", value) <= value <= high
        if "enum" in schema and self.fault != "enum" and value not in schema["enum"]:
            return False
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))

    def add(self, numbers, times, stateless):
        total = int(sum(numbers) * times)
        if self.fault == "output" and len(numbers) == 3:
            total = str(total)
        if self.fault == "eras" and stateless and times > 5:
            total += 1
        found = {"sum": total}
        return {**self.text(json.dumps(found)), "structuredContent": found}

    def say(self, text, stateless, tone="calm"):
        if self.fault in ("crash", "leak"):
            return self.text(text[0])
        if self.fault == "progress" and tone == "loud":
            params = {"progressToken": "none", "progress": 1}
            self.write({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        if self.fault == "log" and text == "":
            params = {"level": "info", "data": "nothing to say"}
            self.write({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
        if self.fault == "hang" and any(ord(letter) > 0xFFFF for letter in text):
            self.hang()
        if self.fault == "exit" and "\0" in text:
            sys.exit(3)
        if self.fault == "form" and text == " ":
            return {"content": text}
        return self.text(text.upper() if tone == "loud" else text)

    def keep_note(self, title, stateless):
        self.notes[title] = title
        if self.fault == "notice" and len(title) > 3:
            self.tools.pop("read_note", None)
        return self.text("kept")

    def drop_note(self, title, stateless):
        # The fault: a dropped note stays in the list, as None.
        if title in self.notes and self.fault == "sequence":
            self.notes[title] = None
        else:
            self.notes.pop(title, None)
        return self.text("dropped")

    def read_note(self, title, stateless):
        if title not in self.notes:
            raise Refusal(-32602, "no such note")
        return self.text(self.notes[title].upper())


def main(fault):
    server = Seeded(fault)
    sys.stdin.reconfigure(errors="replace")
    for line in sys.stdin:
        server.receive(line)


if __name__ == "__main__":
    main(sys.argv[1])

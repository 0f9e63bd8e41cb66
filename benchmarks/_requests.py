"""Requests over HTTP/1.1, encoded beforehand, and where their answers end."""

from dataclasses import dataclass
from typing import Any

from ._peers import LEGACY
from ._pipe import encode
from ._process import FIRST_ID

HOST = "127.0.0.1"
PATH = "/mcp"
SESSION = "Mcp-Session-Id"


@dataclass(frozen=True)
class Template:
    """A request over HTTP/1.1, without its id.

    Attributes:
        before: What comes before the id, the head included.
        after: What comes after it.
    """

    before: bytes
    after: bytes

    def fill(self, identifier: int) -> bytes:
        """Return the request with an id."""
        return b"%b%d%b" % (self.before, identifier, self.after)


def headers(era: str, method: str, params: dict[str, Any], session: str | None) -> dict[str, str]:
    """Return what a POST says beside `Host` and its length."""
    found = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    if era != LEGACY or method != "initialize":
        found["MCP-Protocol-Version"] = era
    if era != LEGACY:
        found["Mcp-Method"] = method
        if "name" in params:
            found["Mcp-Name"] = params["name"]
    if session is not None:
        found[SESSION] = session
    return found


def head(verb: str, port: int, fields: dict[str, str]) -> bytes:
    """Write the head of a request."""
    lines = [f"{verb} {PATH} HTTP/1.1", f"Host: {HOST}:{port}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def template(
    port: int, era: str, method: str, params: dict[str, Any], session: str | None
) -> Template:
    """Encode a request without its id, which has the length of `FIRST_ID`."""
    body = encode(era, method, params, FIRST_ID).rstrip()
    fields = headers(era, method, params, session) | {"Content-Length": str(len(body))}
    before, after = body.split(b"%d" % FIRST_ID)
    return Template(head("POST", port, fields) + before, after)


def is_complete(answer: bytes) -> bool:
    """Tell whether all of an answer is there: by its length, or by the last of its chunks."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    fields = answer[:end].lower()
    at = fields.find(b"\r\ncontent-length:")
    if at < 0:
        return answer.endswith(b"\r\n0\r\n\r\n")
    length = int(fields[at + 17 :].partition(b"\r\n")[0])
    return len(answer) >= end + 4 + length

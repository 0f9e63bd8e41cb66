"""The redirect of a login: a listener on the loopback interface (RFC 8252 section 7.3).

Theory of operation. The listener opens its port before the browser is opened, so that no answer is
missed. Each connection has one request, limited in time and size; browsers also open connections
without a request. The first request for the redirect URI with the answer to this login, a code or
an error with its `state`, ends the wait, and its parameters are the result. Any other request, for
example of a page that guesses the port, gets an error page, and the wait continues. The pages are
plain, without scripts. Then the port is closed.
"""

import html
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import trio

from ..._errors import AuthError

#: Bytes of the head of a request.
HEAD_SIZE: Final = 16 * 1024
#: Seconds for a request and its answer.
REQUEST_TIMEOUT: Final = 10.0
#: Connections at the same time.
MAX_CONNECTIONS: Final = 16
#: Parameters of an answer.
MAX_PARAMS: Final = 50
#: The path of redirects to a port that the listener chose.
PATH: Final = "/callback"

_HEAD: Final = (
    "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Connection: close\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'\r\n\r\n"
)
_PAGE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    "<h1>{title}</h1><p>{text}</p>"
)


class RedirectListener:
    """Receives the redirect of one login.

    Args:
        listeners: The open ports; empty if the redirect URI is not on this machine.
        uri: The redirect URI.

    Attributes:
        uri: The redirect URI.
        is_open: True if a port is open; False if the redirect URI is not on this machine.
    """

    def __init__(self, listeners: list[trio.SocketListener], uri: str) -> None:
        self.uri = uri
        self.is_open = bool(listeners)
        self._listeners = listeners
        parts = urlsplit(uri)
        self._path = parts.path or "/"
        # A browser leaves out the usual port.
        self._hosts = {parts.netloc.lower(), parts.netloc.lower().removesuffix(":80")}
        self._open = 0
        self._is_answer: Callable[[Mapping[str, str]], bool] = bool
        self._answer: Mapping[str, str] = {}
        # Set once the page was sent.
        self._answered = trio.Event()

    async def wait(self, is_answer: Callable[[Mapping[str, str]], bool]) -> Mapping[str, str]:
        """Wait for the redirect.

        Args:
            is_answer: Tells whether the parameters of a request answer this login.

        Returns:
            The parameters of its query.
        """
        self._is_answer = is_answer
        async with trio.open_nursery() as nursery:
            if self.is_open:
                nursery.start_soon(trio.serve_listeners, self._serve, self._listeners)
            await self._answered.wait()
            nursery.cancel_scope.cancel()
        return self._answer

    def take(self, answer: Mapping[str, str]) -> None:
        """End the wait with an answer that came in another way."""
        self._answer = answer
        self._answered.set()

    async def _serve(self, stream: trio.SocketStream) -> None:
        self._open += 1
        try:
            with trio.move_on_after(REQUEST_TIMEOUT):
                async with stream:
                    if self._open <= MAX_CONNECTIONS:
                        await stream.send_all(self._respond(await _read_head(stream)))
        except trio.BrokenResourceError:
            pass  # the browser has left
        finally:
            self._open -= 1
            if self._answer:
                self._answered.set()

    def _respond(self, head: bytes) -> bytes:
        """Make the page for a request, and store its answer."""
        lines = head.decode("latin-1").split("\r\n")
        fields = [line.partition(":") for line in lines[1:]]
        hosts = [value.strip().lower() for name, _, value in fields if name.lower() == "host"]
        try:
            method, target, _version = lines[0].split(" ")
            path, _, query = target.partition("?")
            params = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMS))
        except ValueError:
            method, path, params = "", "", {}
        if method != "GET":
            return _page("400 Bad Request", "Not understood", "This is not the request of a login.")
        is_here = path == self._path and len(hosts) == 1 and hosts[0] in self._hosts
        if not is_here or not params.keys() & {"code", "error"}:
            return _page("404 Not Found", "Nothing is here", "A login answers at another address.")
        if not self._is_answer(params):
            said = "The program waits for the answer to another login. Go on there, or begin again."
            return _page("400 Bad Request", "Not this login", said)
        # The first answer counts.
        self._answer = self._answer or params
        if "error" in params:
            said = f"The authorization server answered: {params['error'][:200]}."
            return _page("200 OK", "The login failed", said)
        return _page("200 OK", "Back to the program", "You can close this window.")


async def _read_head(stream: trio.SocketStream) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data and len(data) < HEAD_SIZE:
        more = await stream.receive_some()
        if not more:
            break
        data += more
    return data


def _page(status: str, title: str, text: str) -> bytes:
    body = _PAGE.format(title=html.escape(title), text=html.escape(text)).encode()
    return _HEAD.format(status=status, length=len(body)).encode() + body


@asynccontextmanager
async def open_listener(
    uri: str, port: int, earlier: int | None = None
) -> AsyncIterator[RedirectListener]:
    """Open a listener for one login.

    Args:
        uri: The redirect URI, if it is fixed; else empty, for `http://127.0.0.1:PORT/callback`.
        port: The port, if `uri` is empty; 0 for any free port.
        earlier: The preferred port, if any free port is allowed.

    Yields:
        The listener; its port is closed at the end of the block.

    Raises:
        AuthError: The port is in use.
    """
    host, listeners = "127.0.0.1", None
    if uri:
        parts = urlsplit(uri)
        host, port = parts.hostname or host, parts.port or 80
    for wanted in dict.fromkeys([port or earlier or 0, port]):
        try:
            listeners = await trio.open_tcp_listeners(wanted, host=host, backlog=MAX_CONNECTIONS)
            break
        except OSError as error:
            failure = error
    if listeners is None:
        raise AuthError(
            f"the redirect of the login cannot be received on port {port}: {failure}"
        ) from failure
    try:
        found = listeners[0].socket.getsockname()[1]
        yield RedirectListener(listeners, uri or f"http://127.0.0.1:{found}{PATH}")
    finally:
        for listener in listeners:
            listener.socket.close()

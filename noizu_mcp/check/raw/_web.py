"""A server at a URL: raw HTTP requests, including ones that clients would not send."""

import json
import ssl
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

import trio

from ..._errors import TransportError
from ..._http_log import unlogged
from ..._value import JSON, JSONObject
from ...transports import EventParser, EventSizeError, Http
from ._exchange import Exchange, Notes, RawMessage, Receiver, method_of, requests_of

if TYPE_CHECKING:
    import httpx2

_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
#: Maximum bytes of one answer that are read.
MAX_BODY: Final = 16 * 1024 * 1024
_TOO_LARGE: Final = f"an answer of over {MAX_BODY} bytes"


class WebLink:
    """A connection over HTTP; see `Link`.

    Args:
        target: The URL, and headers of every request.
        notes: Gets the faults of the answers.

    Attributes:
        receiver: The messages of the server.
        url: The URL in use; a redirect changes it.
        certificate_end: When the TLS certificate expires, in seconds since 1970; None without TLS.

    Raises:
        TransportError: The HTTP library is not installed.
    """

    def __init__(self, target: Http, notes: Notes) -> None:
        try:
            import httpx2
        except ImportError:
            text = "checking a URL needs httpx2: pip install 'noizu-mcp[http]'"
            raise TransportError(text) from None
        self._library = httpx2
        self.url = target.url
        self.certificate_end: float | None = None
        self._given = target.headers if isinstance(target.headers, Mapping) else {}
        self.receiver = Receiver(notes)
        self._notes = notes
        # Loading the system's authorities takes 20 ms, and plain HTTP does not need them.
        verify = target.url.startswith("https:")
        self._client = httpx2.AsyncClient(timeout=None, verify=verify, follow_redirects=False)

    def move(self, place: str) -> bool:
        """Follow a redirect within the origin only: another origin would get the credentials.

        Returns:
            False if it leads to another origin.
        """
        there = urljoin(self.url, place)
        old, new = urlsplit(self.url), urlsplit(there)
        if (old.scheme, old.netloc) != (new.scheme, new.netloc):
            return False
        self.url = there
        return True

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def exchange(
        self, message: RawMessage, headers: Mapping[str, str], patience: float
    ) -> Exchange:
        """Send a message and wait for the answer; see `Link`."""
        sent = method_of(message)
        expected = [each["id"] for each in requests_of(message) if each["id"] is not None]
        for each in expected:
            self.receiver.expect(each)
        end = trio.current_time() + patience
        found = await self.post(
            json.dumps(message).encode(), headers, patience, sent=sent, expected=expected
        )
        # A server may end a stream early; its client requests the rest (basic/transports,
        # Resumability and Redelivery).
        status = found.status
        while (
            found.answer is None
            and found.event_id
            and status == 200
            and not (found.failure or found.ended)
        ):
            await trio.sleep(found.retry)
            again = {**headers, "accept": _EVENTS, "last-event-id": found.event_id}
            left = max(0.0, end - trio.current_time())
            rest = await self.send("GET", again, left, sent=sent, expected=expected)
            found.answer, found.failure = rest.answer, rest.failure
            found.seconds = trio.current_time() - end + patience
            found.event_id = rest.event_id or found.event_id
            status = rest.status
        return found

    async def post(
        self,
        body: bytes,
        headers: Mapping[str, str],
        patience: float,
        *,
        sent: str = "",
        expected: Sequence[JSON] = (),
    ) -> Exchange:
        """Send a body unchanged, as a message in JSON; see `send`."""
        base = {"content-type": _JSON, "accept": f"{_JSON}, {_EVENTS}"}
        return await self.send(
            "POST", {**base, **headers}, patience, body=body, sent=sent, expected=expected
        )

    async def send(
        self,
        method: str,
        headers: Mapping[str, str],
        patience: float,
        *,
        url: str | None = None,
        body: bytes | None = None,
        sent: str = "",
        expected: Sequence[JSON] = (),
    ) -> Exchange:
        """Send an HTTP request.

        Args:
            method: `GET` or another method.
            headers: Its headers. Headers of the target are added, but only for its own URL.
            patience: Seconds for the whole answer.
            url: Another URL than the server's.
            body: The bytes of the body.
            sent: What is sent, briefly.
            expected: The ids of the requests in the body; without ids no stream is read.
        """
        found = Exchange(sent or f"{method} {url or ''}".strip())
        given = {name.lower(): value for name, value in self._given.items()} if url is None else {}
        named = {**given, "accept-encoding": "identity"}
        named.update((name.lower(), value) for name, value in headers.items())
        request = self._library.Request(
            method,
            url or self.url,
            headers=[(name.encode(), value.encode("latin-1")) for name, value in named.items()],
            content=body,
            extensions={"timeout": {}},
        )
        began = trio.current_time()
        with trio.move_on_after(patience) as scope:
            try:
                with unlogged():
                    response = await self._client.send(request, stream=True)
                try:
                    await self._read(response, found, expected)
                finally:
                    with trio.CancelScope(shield=True):
                        await response.aclose()
            except self._library.RequestError as error:
                found.failure = str(error) or type(error).__name__
                found.ended = True
        found.seconds = trio.current_time() - began
        if scope.cancelled_caught and not found.failure:
            found.failure = f"no answer within {patience:g} s"
        return found

    async def _read(
        self, response: "httpx2.Response", found: Exchange, expected: Sequence[JSON]
    ) -> None:
        found.status = response.status_code
        # latin-1 has a letter for each byte, and loses nothing.
        found.headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in response.headers.raw
        }
        self._look_at_tls(response)
        is_stream = found.media_type == _EVENTS
        if is_stream and not expected:
            return
        body, parser = bytearray(), EventParser(MAX_BODY)
        # Breaking out of the loop would leave the library's inner generators unfinished.
        with trio.CancelScope() as enough:
            async for part in response.aiter_raw():
                if is_stream:
                    self._take_events(parser, part, found)
                else:
                    body += part
                if len(body) > MAX_BODY:
                    found.failure = _TOO_LARGE
                if found.failure or (is_stream and self.receiver.has_answers(expected)):
                    enough.cancel()
        if not is_stream and not found.failure:
            self._take_body(bytes(body), found, expected)
        if expected and self.receiver.has_answers(expected):
            found.answer = self.receiver.answer_to(expected[0])

    def _take_body(self, body: bytes, found: Exchange, expected: Sequence[JSON]) -> None:
        found.body, kind = body, found.media_type
        success = found.status is not None and 200 <= found.status < 300
        if not expected or (kind != _JSON and not success):
            return
        seen = f"HTTP {found.status}, {kind or 'no content type'}"
        if self._notes.check("content-type", kind == _JSON, found.sent, seen):
            self.receiver.take(body, found.sent)

    def _take_events(self, parser: EventParser, part: bytes, found: Exchange) -> None:
        """Handle the events that a part of a stream completes."""
        try:
            # The first event of a stream may have an id alone, and no message.
            for data in (event.data for event in parser.feed(part) if event.data):
                self.receiver.take(data, found.sent)
        except EventSizeError:
            found.failure = _TOO_LARGE
        found.event_id, found.retry = parser.last_id, parser.retry or 0.0

    def _look_at_tls(self, response: "httpx2.Response") -> None:
        stream = response.extensions.get("network_stream")
        tls = None if stream is None else stream.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert()
        if certificate:
            self.certificate_end = ssl.cert_time_to_seconds(certificate["notAfter"])

    async def fetch(self, url: str, patience: float) -> tuple[Exchange, JSONObject | None]:
        """Get a JSON document.

        Returns:
            The exchange, and the document; None if it is missing.
        """
        found = await self.send("GET", {"accept": _JSON}, patience, url=url)
        try:
            document = json.loads(found.body) if found.status == 200 else None
        except ValueError:
            document = None
        return found, document if isinstance(document, dict) else None

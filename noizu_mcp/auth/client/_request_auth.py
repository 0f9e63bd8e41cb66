"""`RequestAuth`: the credentials of one HTTP client, asked by one task at a time.

Theory of operation. All HTTP requests of a client share one `RequestAuth`. A lock lets one task at
a time ask the credentials, so ten requests that meet an expired token cause one refresh: nine wait,
and are told that the token is newer than the one they sent.

While a refusal is handled a person may be asked, for minutes. The client must not count that time
against its requests, those that wait for the lock included: credentials ask inside of `pause`,
which stops the timeouts of all. Everything else counts.

A request is sent again at most `MAX_REFUSALS - 1` times, whatever the credentials say.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

import trio

from ..._errors import AuthError
from .._challenge import AuthChallenge, parse_challenges
from ._strategy import AuthStrategy, ClientRequest, Credentials, ProtectedServer, Refusal, origin_of

#: Refusals of one request, the last of which is raised. 2025-11-25 `basic/authorization`, "Scope
#: Challenge Handling": clients should limit retries to a few.
MAX_REFUSALS: Final = 4
_SHOWN: Final = 300


class ResponseHead(Protocol):
    """The head of an HTTP answer."""

    @property
    def status(self) -> int:
        """The status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are found in any case."""


class RequestAuth:
    """The credentials of one HTTP client, asked by one task at a time.

    Args:
        strategy: Makes the credentials.
        server: The server.

    Attributes:
        pause: Stops the timeouts of the requests of the client while its block runs.

    Raises:
        TypeError: `strategy` is not an `AuthStrategy`.
        ValueError: It does not fit the server.
    """

    def __init__(self, strategy: AuthStrategy, server: ProtectedServer) -> None:
        if isinstance(strategy, type) or not isinstance(strategy, AuthStrategy):
            raise TypeError(f"auth must be a strategy, such as OAuth() or Bearer(…): {strategy!r}")
        self.pause: Callable[[], AbstractContextManager[object]] = nullcontext
        self._credentials: Credentials = strategy.bind(server)
        self._note_answer = getattr(self._credentials, "note_answer", None)
        self._origin = server.origin
        self._checked_url = ""
        self._lock = trio.Lock()

    async def headers(self, method: str, url: str) -> dict[str, str]:
        """Return the headers of a request, names in lower case.

        Args:
            method: `POST` and the like.
            url: The URL of the request.

        Raises:
            AuthError: There can be no credentials, or the URL is not one of the server.
        """
        # The client follows redirects within the origin only. This holds whatever it does.
        if url != self._checked_url:
            if origin_of(url) != self._origin:
                raise AuthError(f"no credentials leave {self._origin} for {origin_of(url)}")
            self._checked_url = url
        async with self._lock:
            given = await self._credentials.headers(ClientRequest(method, url))
        return {name.lower(): value for name, value in given.items()}

    def note(self, url: str, answer: ResponseHead) -> None:
        """Show an answer to the credentials, if they want to see them.

        Args:
            url: The URL of the request.
            answer: The answer, with any status.
        """
        if self._note_answer is not None:
            self._note_answer(url, answer.headers)

    async def handle(
        self,
        method: str,
        url: str,
        answer: ResponseHead,
        *,
        sent: Mapping[str, str],
        operation: str,
        attempt: int,
    ) -> bool:
        """Tell whether a refused request is to be sent again.

        Args:
            method: The method of the request.
            url: Its URL.
            answer: The refusal.
            sent: What `headers` has returned for the request.
            operation: The subject of the request.
            attempt: The number of its refusals, from 1.

        Raises:
            AuthError: Better credentials could not be got.
        """
        # A person must not be asked for the sake of a session that ends anyway.
        if attempt >= MAX_REFUSALS or method == "DELETE":
            return False
        refusal = Refusal(
            request=ClientRequest(method, url),
            status=answer.status,
            challenges=read_challenges(answer.headers),
            headers=answer.headers,
            sent=sent,
            operation=operation,
            attempt=attempt,
            pause=self.pause,
        )
        async with self._lock:
            return await self._credentials.handle(refusal)


def read_challenges(headers: Mapping[str, str]) -> tuple[AuthChallenge, ...]:
    """Read the challenges of an answer; none if they are malformed.

    Args:
        headers: The headers of the answer.
    """
    try:
        return tuple(parse_challenges(headers.get("www-authenticate", "")))
    except ValueError:
        return ()


def explain_refusal(headers: Mapping[str, str], *, had_auth: bool) -> str:
    """Say what a server that answered 401 or 403 wants, and what to do.

    Args:
        headers: The headers of the answer.
        had_auth: The client has a strategy.

    Returns:
        The rest of a sentence, such as `; it wants the scope files:read`; may be empty.
    """
    wanted = next((each for each in read_challenges(headers) if each.params), None)
    if wanted is None:
        return ""
    said = []
    for name, text in (
        ("error_description", "it says: {}"),
        ("scope", "it wants the scope {}"),
        ("resource_metadata", "its metadata is at {}"),
    ):
        if value := wanted.params.get(name):
            said.append(text.format(value[:_SHOWN]))
    if not had_auth:
        said.append("give credentials: connect(url, auth=OAuth()) or auth=Bearer(token)")
    return "; " + "; ".join(said) if said else ""

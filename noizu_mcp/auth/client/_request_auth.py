"""`RequestAuth`: the credentials of one HTTP client, asked by one task at a time.

Theory of operation. All HTTP requests of a client share one `RequestAuth`. A lock lets one task at
a time ask the credentials, so ten requests with an expired token cause one refresh: nine wait, and
find that the current token is newer than their own.

The credentials may have to ask a person, for minutes. This time must not count for the timeouts of
requests, including requests that wait for the lock: credentials ask inside `pause`, which stops the
timeouts of all requests. All other time counts.

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
        """The headers; names are case-insensitive."""


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
            AuthError: No credentials could be obtained, or the URL has another origin.
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
        """Pass an answer to the credentials, if they have `note_answer`.

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
        """Pass a refusal to the credentials; return whether to send the request again.

        Args:
            method: The method of the request.
            url: Its URL.
            answer: The refusal.
            sent: The headers that `headers` returned for the request.
            operation: The subject of the request.
            attempt: The number of its refusals, from 1.

        Raises:
            AuthError: No better credentials could be obtained.
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
    """Explain an answer 401 or 403: what the server requires, and what to do.

    Args:
        headers: The headers of the answer.
        had_auth: True if the client has a strategy.

    Returns:
        The rest of a sentence: `; it wants the scope files:read`; may be empty.
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

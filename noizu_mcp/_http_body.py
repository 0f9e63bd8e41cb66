"""The body of an HTTP answer, read whole within a bound; for any client of the HTTP library."""

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    import httpx2


class BodyError(Exception):
    """A body that is compressed or too large; the text says which."""


async def read_body(response: "httpx2.Response", max_size: int) -> bytes:
    """Read the body of an answer to a request with `accept-encoding: identity`.

    Args:
        response: The answer, not read yet.
        max_size: Bytes of the largest body.

    Raises:
        BodyError: The body is compressed, or larger.
    """
    # A compressed body of a kilobyte can unpack to a gigabyte.
    if response.headers.get("content-encoding", "identity") != "identity":
        raise BodyError("the answer is compressed, against our request")
    body = bytearray()
    # Breaking out of the loop would leave the nested async generators of httpx2 unfinished.
    # Cancelled while they wait for more, they run to their end.
    with trio.CancelScope() as enough:
        async for part in response.aiter_raw():
            body += part
            if len(body) > max_size:
                enough.cancel()
    if len(body) > max_size:
        raise BodyError(f"the answer has more than {max_size} bytes")
    return bytes(body)

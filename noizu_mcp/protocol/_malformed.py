"""What a message that is none means; the same for both ends."""

from ..jsonrpc import Malformed
from ._events import Resolve, Send
from ._inflight import Ledger


def receive_malformed(ledger: Ledger, message: Malformed) -> Send | Resolve | None:
    """Answer what is no message; an answer that makes no sense fails the request it is for.

    Otherwise the request would wait for an answer that has already been given.
    """
    return Send(message.error) if message.answer else ledger.resolve(Resolve(message.error))

"""Failed questions: refused by the client, or out of time, in words for a model."""

from ..._errors import McpError


class ClientRefusal(McpError):
    """The error with which the client answered a question.

    Handlers may catch it as an `McpError`. A tool that does not catch it has not chosen to answer
    with a protocol error: the model gets a result instead, and can go on without the answer.

    Args:
        method: The method of the question.
        error: The error of the client.
    """

    def __init__(self, method: str, error: McpError) -> None:
        self.method = method
        super().__init__(error.code, error.message, error.data)


def refused(error: ClientRefusal) -> str:
    """Make the text for a model: the client refused, with its reason."""
    return f"The client refused {error.method}: {error.message} ({error.code})"


def refusal_in(error: BaseException) -> ClientRefusal | None:
    """Return the refusal of the client, or the first of several, if nothing else has failed."""
    if isinstance(error, BaseExceptionGroup):
        # Concurrent questions are often refused together. Any other failure beside them is the
        # author's, and must not hide behind a refusal.
        others = error.split(ClientRefusal)[1]
        return refusal_in(error.exceptions[0]) if others is None else None
    return error if isinstance(error, ClientRefusal) else None


def timed_out(error: Exception) -> str:
    """Make the text for a model: the client did not answer in time."""
    return f"The client did not answer in time: {error}"

"""Questions without an answer: refused by the client, or out of time, in words for a model."""

from ..._errors import McpError


class ClientRefusal(McpError):
    """The error that the client answered a question with.

    Handlers see it as the `McpError` that it is, and may catch it. A tool that lets it out has not
    chosen to answer with an error of the protocol: the model is told, and can do without.

    Args:
        method: What the client was asked.
        error: What it answered.
    """

    def __init__(self, method: str, error: McpError) -> None:
        self.method = method
        super().__init__(error.code, error.message, error.data)


def refused(error: ClientRefusal) -> str:
    """Say to a model that the client refused, and why."""
    return f"The client refused {error.method}: {error.message} ({error.code})"


def refusal_in(error: BaseException) -> ClientRefusal | None:
    """Return the refusal of the client, or the first of several, if nothing else has failed."""
    if isinstance(error, BaseExceptionGroup):
        others = error.split(ClientRefusal)[1]
        return refusal_in(error.exceptions[0]) if others is None else None
    return error if isinstance(error, ClientRefusal) else None


def timed_out(error: Exception) -> str:
    """Say to a model that the client did not answer."""
    return f"The client did not answer in time: {error}"

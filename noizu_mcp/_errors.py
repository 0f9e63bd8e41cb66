"""Every exception of the package: one file, so that raising one never needs a looping import.

Two families. `DefinitionError` and `SchemaError` are raised while a program is being put together.
The rest happens while it runs; each failure is exactly one of these, never an `ExceptionGroup`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from ._value import Value


@attrs.frozen(eq=False, repr=False)
class Problem(Value):
    """One thing that is wrong in a class.

    Attributes:
        where: What is wrong, as a dotted path from the class: `SearchDocs.Input.limit`.
        text: What is wrong and what to write instead, one line.
        file: The source file, if known.
        line: The line in that file, counted from 1, if known.
    """

    where: str
    text: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file or '<unknown>'}:{self.line}: " if self.line is not None else ""
        return f"{place}{self.where}: {self.text}"


class _Copied(Exception):
    """What can be copied and pickled, however its constructor differs from `args`.

    An exception with fields of its own may come from another process, or from a worker of a pool.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args), self.__dict__


def _again(cls: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    error = cls.__new__(cls, *args)
    error.args = args
    return error


class DefinitionError(_Copied, TypeError):
    """A class or a registration cannot be what it says; raised when the class statement runs.

    Attributes:
        problems: Every problem of the class, in source order.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class SchemaError(ValueError):
    """A JSON Schema that is not valid, or that breaks a limit."""


class SchemaUnsupported(_Copied, SchemaError):
    """A valid JSON Schema that the chosen engine cannot serve.

    Attributes:
        keyword: The keyword that the engine cannot serve.
    """

    def __init__(self, message: str, keyword: str) -> None:
        self.keyword = keyword
        super().__init__(message)


class ToolError(_Copied):
    """Raised by a tool to answer `isError: true` with a text or content of its own choice.

    Args:
        content: A text, one content block, or a list of either; what the model will read.
        meta: Sent as `_meta` of the result.
    """

    def __init__(self, content: Any = "", *, meta: dict[str, Any] | None = None) -> None:
        self.content = content
        self.meta = meta
        super().__init__(content if isinstance(content, str) else repr(content))


class McpError(_Copied):
    """A JSON-RPC error: raised by a handler to send one, by a client that received one.

    Attributes:
        code: The JSON-RPC error code.
        message: One sentence for the peer.
        data: Any JSON value, or None for no data.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(f"{message} ({code})")


class ProtocolError(Exception):
    """The peer broke the protocol."""


class LocalProtocolError(ProtocolError):
    """This program asked for something that the protocol does not allow now."""


class NoSessionError(LocalProtocolError):
    """A handler stored session state on a revision that has no sessions (2026-07-28)."""


class TaskStarted(_Copied):
    """The call goes on as a task; only a client that says that it knows tasks gets this.

    Attributes:
        task: The `Task` as it began; `tasks/get` says how it goes on.
    """

    def __init__(self, task: Any) -> None:
        self.task = task
        super().__init__(f"the call goes on as the task {task.task_id}")


class RequestTimeout(Exception):
    """The peer did not answer in time; it has been told to stop."""


class ConnectionClosed(Exception):
    """The connection ended before the answer came; or the session, and no new one began."""


class TransportError(_Copied):
    """The connection could not be made: the command did not start, the address did not answer.

    Attributes:
        status: The HTTP status, where that is all that came back.
    """

    def __init__(self, message: str = "", *, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class AuthError(Exception):
    """The server answered 401 or 403 and the strategy could not satisfy it."""


class InvalidToken(_Copied):
    """A verifier does not take a token; the client hears `invalid_token` and nothing else.

    Attributes:
        reason: What is wrong with it, for the log only.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class InsufficientScope(_Copied):
    """Who is calling is known, and may not do this (RFC 6750 section 3.1).

    Attributes:
        scopes: Every scope that the operation needs, those that are held included.
    """

    def __init__(self, scopes: Iterable[str]) -> None:
        self.scopes = (scopes,) if isinstance(scopes, str) else tuple(scopes)
        super().__init__(f"it needs the scopes {' '.join(self.scopes)}")


class VerifierUnavailable(_Copied):
    """Nobody can say now whether a token is good: keys or answers cannot be fetched.

    Attributes:
        reason: What failed, for the log only.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)

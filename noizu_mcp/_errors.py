"""The exceptions of the package. They are in one file, so that every layer can import them.

`DefinitionError` and `SchemaError` are raised while a program is defined, the others while
it runs. One failure raises one exception, never an `ExceptionGroup`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from ._value import JSON, JSONObject, Value


@attrs.frozen(eq=False, repr=False)
class Problem(Value):
    """One mistake in a class.

    Attributes:
        where: A dotted path from the class to the mistake: `SearchDocs.Input.limit`.
        text: The mistake and the correction, on one line.
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


class McpException(Exception):
    """The base class of the exceptions of this package."""

    # The constructors of subclasses differ from `args`. Worker processes send exceptions to the
    # process that waits for them, so exceptions can be copied and pickled all the same.
    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), self.args), self.__dict__


def _again(cls: type[BaseException], args: tuple[object, ...]) -> BaseException:
    # Past the constructor, which has other parameters; the state of the object comes after.
    error = cls.__new__(cls, *args)
    error.args = args
    return error


class DefinitionError(McpException, TypeError):
    """A class or a registration is defined wrongly; raised when the class statement runs.

    Attributes:
        problems: Every problem of the class, in source order.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class SchemaError(McpException, ValueError):
    """A JSON Schema is not valid, or exceeds a limit."""


class SchemaUnsupported(SchemaError):
    """A valid JSON Schema uses a keyword that the chosen engine does not support.

    Attributes:
        keyword: The unsupported keyword.
    """

    def __init__(self, message: str, keyword: str) -> None:
        self.keyword = keyword
        super().__init__(message)


class ToolError(McpException):
    """A tool raises this to answer with `isError: true` and content for the model.

    Args:
        content: A text, one content block, or a list of either.
        meta: Sent as `_meta` of the result.
    """

    def __init__(self, content: object = "", *, meta: JSONObject | None = None) -> None:
        self.content = content
        self.meta = meta
        super().__init__(content if isinstance(content, str) else repr(content))


class UnsavedHandle(TypeError):
    """A handle that has no id yet is written as JSON.

    Internal: the call of a tool stores the handles of its result, and writes the result again.
    """


class Denied(ToolError):
    """A policy refuses a call, or a capability does not allow it; the client gets the reason.

    The call of a tool is answered with `isError: true`, any other request with error -31404.

    Args:
        reason: One sentence for the caller; nothing that it must not know.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Denied: {reason}")


class DeniedHidden(Denied):
    """A policy refuses a component that the caller must not know of.

    Args:
        reason: The reason, for telemetry.
        error: The code, the message and the data of the error for an unknown component.
    """

    def __init__(self, reason: str, error: tuple[int, str, JSON]) -> None:
        self.error = error
        super().__init__(reason)

    @property
    def answer(self) -> "McpError":
        """The answer to the caller: the error for an unknown component."""
        return McpError(*self.error)


class McpError(McpException):
    """A JSON-RPC error. A handler raises it to send one; a client raises it when it receives one.

    Attributes:
        code: The JSON-RPC error code.
        message: One sentence for the peer.
        data: Any JSON value, or None for no data.
    """

    def __init__(self, code: int, message: str, data: JSON = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(f"{message} ({code})")


class ResourceNotFound(McpError):
    """A handler raises this to answer that there is no such resource.

    The client gets the error code of its version: -32602 on 2026-07-28, -32002 before
    (`server/resources`, "Error Handling").

    Args:
        uri: The URI; None for the requested URI.
    """

    def __init__(self, uri: str | None = None) -> None:
        self.uri = uri
        super().__init__(-32602, "Resource not found", None if uri is None else {"uri": uri})


class ProtocolError(McpException):
    """The peer broke the protocol."""


class LocalProtocolError(ProtocolError):
    """This program tried to do something that the protocol does not allow in this state."""


class SkillError(ProtocolError):
    """A skill of a server must not be used: a file does not match its entry."""


class NoSessionError(LocalProtocolError):
    """A handler stored session state on a revision that has no sessions (2026-07-28)."""


class TaskStarted(McpException):
    """A call continues as a task. Only a client that declares the tasks extension gets this.

    Attributes:
        task: The `Task` at its start; `tasks/get` returns its present state.
    """

    def __init__(self, task: Any) -> None:
        self.task = task
        super().__init__(f"the call goes on as the task {task.task_id}")


class RequestTimeout(McpException):
    """The peer did not answer in time. A cancellation has been sent to it."""


class ConnectionClosed(McpException):
    """The connection or the session ended before the answer arrived."""


class TransportError(McpException):
    """The connection could not be opened: a command did not start, or an address did not answer.

    Attributes:
        status: The HTTP status, if the server answered with nothing else.
    """

    def __init__(self, message: str = "", *, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class TargetError(TransportError):
    """A target names no server: a file, a module, or an entry of a configuration.

    Attributes:
        is_wrong: True if the target itself is wrong; False if code of the user failed.
    """

    def __init__(self, message: str, *, is_wrong: bool = True) -> None:
        super().__init__(message)
        self.is_wrong = is_wrong


class AuthError(McpException):
    """The server refused the credentials of the client, or none could be got."""


#: Failures of a peer, or of the way to it: a client meets them without a mistake of its own.
PEER_FAILURES: Final = (
    AuthError,
    ConnectionClosed,
    McpError,
    ProtocolError,
    RequestTimeout,
    TransportError,
)


class InvalidToken(McpException):
    """A verifier refuses a token. The client gets the error `invalid_token` without details.

    Attributes:
        reason: The reason, for the log only.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class InsufficientScope(McpException):
    """The verified caller lacks scopes for an operation (RFC 6750 section 3.1).

    Attributes:
        scopes: Every scope that the operation needs, including the scopes that the caller holds.
    """

    def __init__(self, scopes: Iterable[str]) -> None:
        self.scopes = (scopes,) if isinstance(scopes, str) else tuple(scopes)
        super().__init__(f"it needs the scopes {' '.join(self.scopes)}")


class VerifierUnavailable(McpException):
    """A token cannot be verified now, because keys or answers cannot be fetched.

    Attributes:
        reason: The failure, for the log only.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)

"""The rest of the work on a request that is not `tools/call`: code of the author, in time."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ...engine import Job, is_crash
from .._server_request import ServerRequest

if TYPE_CHECKING:
    from ...components import PromptSpec, ResourceSpec, TemplateSpec


def in_time(
    request: ServerRequest,
    work: Callable[[], Coroutine[Any, Any, None]],
    component: "PromptSpec | ResourceSpec | TemplateSpec | None" = None,
    check: Callable[[], Awaitable[None] | None] | None = None,
) -> Job:
    """Make the rest of the work on a request from a call of the author's code.

    An exception of the work becomes the answer. A cancellation is not caught.

    Args:
        request: The request.
        work: The work.
        component: See `ServerRequest.limit_time`.
        check: Asks the policies first, with a time limit of its own; None without policies.
    """

    async def job() -> None:
        try:
            if check is not None:
                rest = check()
                if rest is not None:
                    await rest
                request.limit_time(component)
            await work()
        except BaseException as error:
            if not is_crash(error):
                raise
            request.send_failure(error)

    if check is None:
        request.limit_time(component)
    else:
        request.serve_with(component)
    return job

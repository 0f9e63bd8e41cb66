"""The function `available` of a registration, which decides who may list and use it.

On 2026-07-28 lists may differ by authorization only (`server/tools`). Requests of that revision
have an empty session, so a function that uses the session decides as for a new one.
"""

import inspect
from collections.abc import Callable
from typing import Any

from ...components import Context
from ...engine import call_user_code, crashes_logged


def is_available(spec: Any, context: Context | None) -> bool:
    """Tell whether the caller of a request may list and use a registration.

    Args:
        spec: The registration.
        context: The request or session; None if everything is available.

    Returns:
        True without an `available` function. False if it raised; the exception is logged.
    """
    asked: Callable[[Context], object] | None = getattr(spec, "available", None)
    if asked is None or context is None:
        return True
    answer: object = False
    text = "available of %s failed; it is hidden"
    with crashes_logged(text, spec.source, log=context.server.crash_log):
        answer = call_user_code(lambda: _is_true(asked(context)))
    return bool(answer)


def _is_true(answer: object) -> bool:
    # A coroutine is true, and would show the registration to every caller.
    if inspect.iscoroutine(answer):
        answer.close()  # avoids Python's warning about it
        raise TypeError("a coroutine was returned; available must be sync")
    return bool(answer)

"""Assertions about notifications: they come when they come."""

from typing import Any, Final

import trio

from ._transcript import Transcript

#: Seconds to wait for what should come; a server in memory needs far less.
TIMEOUT: Final = 1.0
#: Seconds to wait for what should not come.
SILENCE: Final = 0.1


async def assert_notification(
    transcript: Transcript,
    method: str,
    *,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - an AssertionError says what was awaited
    **params: Any,
) -> dict[str, Any]:
    """Wait for a notification; each one satisfies one assertion, in the order they came.

    Args:
        transcript: What was given to `connect(…, tap=transcript)`.
        method: Its method: `notifications/tools/list_changed`.
        timeout: Seconds.
        params: What its params must hold, among others.

    Returns:
        Its params.

    Raises:
        AssertionError: It did not come in time.
    """
    with trio.move_on_after(timeout):
        while True:
            found = transcript.claim(method, **params)
            if found is not None:
                return found
            await transcript.wait()
    wanted = f" with {params!r}" if params else ""
    raise AssertionError(f"Timed out awaiting {method} notification{wanted}")


async def assert_progress(
    transcript: Transcript,
    progress: float,
    *,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - as above
    **params: Any,
) -> dict[str, Any]:
    """Wait for a progress notification.

    Args:
        transcript: What was given to `connect(…, tap=transcript)`.
        progress: How far it must say it is.
        timeout: Seconds.
        params: What else its params must hold: `total=2`, `message="…"`.

    Returns:
        Its params.

    Raises:
        AssertionError: It did not come in time.
    """
    return await assert_notification(
        transcript, "notifications/progress", timeout=timeout, progress=progress, **params
    )


async def refute_notification(
    transcript: Transcript, method: str, *, within: float = SILENCE, **params: Any
) -> None:
    """Wait to see that a notification does not come.

    Args:
        transcript: What was given to `connect(…, tap=transcript)`.
        method: Its method.
        within: Seconds of silence.
        params: Only one whose params hold this counts.

    Raises:
        AssertionError: It came.
    """
    with trio.move_on_after(within):
        while True:
            found = transcript.claim(method, **params)
            if found is not None:
                raise AssertionError(f"Expected no {method} notification, got: {found!r}")
            await transcript.wait()

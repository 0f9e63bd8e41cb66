"""Features: the table from a method to the function that serves it."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from ...components import ToolSpec
from ...engine import Job
from .._running import Route
from .._server_request import ServerRequest
from ..calls._call import RequestedCall, call_tool
from ._complete import complete
from ._lifecycle import discover, initialize, ping, set_level
from ._lists import list_page
from ._prompts import get_prompt
from ._resources import get_skill, read_directory, read_resource, subscribe, unsubscribe
from ._subscriptions import listen

if TYPE_CHECKING:
    from ._tasks import OfferedTask


def _serve_task(function: str, ctx: ServerRequest) -> Job | None:
    """Answer a method of `_tasks`, which is loaded on first use."""
    from . import _tasks

    route: Route = getattr(_tasks, function)
    return route(ctx)


def _prepare_task(call: RequestedCall, request: ServerRequest, spec: ToolSpec) -> "OfferedTask":
    """Make the start of the task of a call; most tools have no tasks."""
    from ._tasks import OfferedTask

    return OfferedTask(call, request, spec)


#: Every method of both eras. The protocol layer refuses methods that the revision of a request does
#: not have before this table is used.
ROUTES: Final[Mapping[str, Route]] = {
    "initialize": initialize,
    "ping": ping,
    "server/discover": discover,
    "subscriptions/listen": listen,
    "tools/list": partial(list_page, "tools", "list_tools"),
    "tools/call": partial(call_tool, _prepare_task),
    "resources/list": partial(list_page, "resources", "list_resources"),
    "resources/templates/list": partial(list_page, "templates", "list_resource_templates"),
    "resources/read": read_resource,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
    "prompts/list": partial(list_page, "prompts", "list_prompts"),
    "prompts/get": get_prompt,
    "completion/complete": complete,
    "logging/setLevel": set_level,
    "tasks/get": partial(_serve_task, "get_task"),
    "tasks/update": partial(_serve_task, "update_task"),
    "tasks/cancel": partial(_serve_task, "cancel_task"),
    "skills/list": partial(list_page, "skills", "list_skills"),
    "skills/get": get_skill,
    "resources/directory/read": read_directory,
}

"""Features: the table from a method to the function that serves it."""

from collections.abc import Mapping
from typing import Final

from .._running import Route
from ._complete import complete
from ._lifecycle import discover, initialize, ping, set_level
from ._prompts import get_prompt, list_prompts
from ._resources import (
    list_resources,
    list_templates,
    read_resource,
    subscribe,
    unsubscribe,
)
from ._skills import get_skill, list_skills, read_directory
from ._subscriptions import listen
from ._tasks import cancel_task, get_task, update_task
from ._tools import call_tool, list_tools

#: Every method of both eras. The protocol layer has refused the methods that the revision of a
#: request does not have, before this table is read.
ROUTES: Final[Mapping[str, Route]] = {
    "initialize": initialize,
    "ping": ping,
    "server/discover": discover,
    "subscriptions/listen": listen,
    "tools/list": list_tools,
    "tools/call": call_tool,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "completion/complete": complete,
    "logging/setLevel": set_level,
    "tasks/get": get_task,
    "tasks/update": update_task,
    "tasks/cancel": cancel_task,
    "skills/list": list_skills,
    "skills/get": get_skill,
    "resources/directory/read": read_directory,
}

"""References in messages: the requests that an answer or a notification belongs to."""

from collections.abc import Iterator

from .._value import JSON, JSONObject
from ..types import META_PROGRESS_TOKEN, META_SUBSCRIPTION_ID

#: The name of a request in other messages: `id` or `token`, and its value.
Name = tuple[str, JSON]


def params_of(message: JSONObject) -> JSONObject:
    """Return the params of a message; an empty object if it has no params."""
    found = message.get("params")
    return found if isinstance(found, dict) else {}


def references(message: JSONObject) -> Iterator[tuple[JSONObject, str, Name]]:
    """Yield the references to requests in a message: the object, the member, and the name."""
    params = params_of(message)
    meta = params.get("_meta")
    places = [(params, META_PROGRESS_TOKEN, "token"), (params, "requestId", "id")]
    if "method" not in message:
        places.append((message, "id", "id"))
    if isinstance(meta, dict):
        places.append((meta, META_SUBSCRIPTION_ID, "id"))
    for owner, member, kind in places:
        if isinstance(owner.get(member), str | int):
            yield owner, member, (kind, owner[member])

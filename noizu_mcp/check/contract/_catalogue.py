"""The file of a contract: everything that a server lists, as JSON in a stable order.

It has no member that changes by itself: no version of the server, no `_meta`, no icons, and no
sizes or times of resources.
"""

import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from ..._errors import McpError
from ..._files import through_no_link
from ..._value import JSON, JSONObject
from ...client import Client
from ...jsonrpc import METHOD_NOT_FOUND

ListKind = Literal["tools", "resources", "templates", "prompts"]
#: The kinds of components, in the order of a report.
KINDS: Final[tuple[ListKind, ...]] = get_args(ListKind)
#: The version of this format.
FORMAT: Final = 1

_VOLATILE: Final = frozenset({"_meta", "icons", "size"})


class _Listing(NamedTuple):
    """The list of one kind.

    Attributes:
        fetch: Lists the components.
        key: The member by which clients name them.
        capability: The capability that declares them.
    """

    fetch: Callable[[Client], Awaitable[Sequence[Any]]]
    key: str
    capability: str


_LISTINGS: Final[Mapping[ListKind, _Listing]] = {
    "tools": _Listing(Client.list_tools, "name", "tools"),
    "resources": _Listing(Client.list_resources, "uri", "resources"),
    "templates": _Listing(Client.list_resource_templates, "uriTemplate", "resources"),
    "prompts": _Listing(Client.list_prompts, "name", "prompts"),
}


async def fetch(client: Client, kinds: Iterable[ListKind] = KINDS) -> JSONObject:
    """List everything that a server offers.

    Args:
        client: A client of the server.
        kinds: The kinds of components.

    Returns:
        The contract: `contract` (the format), `protocol` (the version in use), `instructions`, and
        for each kind an object with its components by their names or URIs.

    Raises:
        McpError: The server cannot list them.
    """
    found: JSONObject = {"contract": FORMAT, "protocol": client.protocol_version}
    if client.instructions:
        found["instructions"] = client.instructions
    for kind in kinds:
        listing = _LISTINGS[kind]
        listed: Sequence[Any] = ()
        if client.capabilities.has(listing.capability):
            try:
                listed = await listing.fetch(client)
            except McpError as error:
                # A server without templates may not know the method that lists them.
                if error.code != METHOD_NOT_FOUND:
                    raise
        wires = [each.to_wire() for each in listed]
        found[kind] = {wire.pop(listing.key): _stable(wire) for wire in wires}
    return found


def _stable(wire: JSONObject) -> JSONObject:
    """Leave out members that change by themselves."""
    found = {key: value for key, value in wire.items() if key not in _VOLATILE}
    annotations = found.get("annotations")
    if isinstance(annotations, dict) and "lastModified" in annotations:
        kept = {key: value for key, value in annotations.items() if key != "lastModified"}
        found["annotations"] = kept
    return found


def save(contract: JSONObject, path: str | os.PathLike[str]) -> None:
    """Write a contract to a file.

    Args:
        contract: The contract; see `fetch`.
        path: The path of the file, which is replaced.

    Raises:
        OSError: It cannot be written, or is a link to another file.
    """
    text = json.dumps(contract, ensure_ascii=False, indent=2, sort_keys=True)
    # Half of a surrogate pair cannot be written; its JSON escape is equivalent.
    with open(path, "wb", opener=through_no_link) as file:
        file.write(f"{text}\n".encode("utf-8", "backslashreplace"))


def read(path: str | os.PathLike[str]) -> JSONObject:
    """Read the file of a contract.

    Args:
        path: The path of the file.

    Returns:
        The contract; see `fetch`.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not a contract, or has a newer format.
    """
    try:
        found = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not _is_object(found) or not isinstance(found.get("protocol"), str):
        raise ValueError(f"{path} is no contract; write it with `noizu-mcp contract write`")
    if found.get("contract") != FORMAT:
        text = f"{path} has the format {found.get('contract')!r}, and this program reads {FORMAT}"
        raise ValueError(f"{text}; write it again")
    for kind in KINDS:
        components = found.get(kind, {})
        if not _is_object(components) or not all(map(_is_object, components.values())):
            raise ValueError(f"{path}: {kind} is no object with objects; write it again")
    contract: JSONObject = found
    return contract


def _is_object(value: JSON) -> bool:
    return isinstance(value, dict)

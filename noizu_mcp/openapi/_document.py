"""OpenAPI documents: read from JSON or YAML, with their references and servers.

Theory of operation. A document is one tree of JSON values. A reference is a pointer into the same
tree; `resolve` follows it, through at most `MAX_HOPS` others. A reference to another document is
refused: it would be one more place that names requests, fetched from wherever the document says.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote, urljoin, urlsplit

from .._errors import McpException
from .._pointer import unescape
from .._value import JSONObject

#: Bytes of a document; that of the largest public API has 12 MB.
MAX_DOCUMENT: Final = 16 * 2**20
#: Levels of a document in YAML.
MAX_NESTING: Final = 500
#: References in a row, from one to the next.
MAX_HOPS: Final = 32
#: Versions of OpenAPI that are read.
_VERSIONS: Final = ("3.0.", "3.1.", "3.2.")


class DocumentError(McpException, ValueError):
    """An OpenAPI document, or a part of it, that cannot be used; the text says why."""


def parse_document(data: bytes, where: str) -> JSONObject:
    """Read the bytes of a document.

    Args:
        data: JSON; or YAML, if PyYAML is installed.
        where: Names the document in errors.

    Raises:
        DocumentError: It is neither, too large, or no document of OpenAPI 3.0, 3.1 or 3.2.
    """
    if len(data) > MAX_DOCUMENT:
        raise DocumentError(f"{where} has more than {MAX_DOCUMENT} bytes")
    try:
        found = json.loads(data)
    except RecursionError:
        raise DocumentError(f"{where} is nested too deeply") from None
    except ValueError as error:
        found = _parse_yaml(data, where, error)
    return check_document(found, where)


def _parse_yaml(data: bytes, where: str, error: ValueError) -> object:
    if data.lstrip()[:1] in (b"{", b"["):
        raise DocumentError(f"{where} is no JSON: {error}")
    try:
        import yaml
    except ImportError:
        text = f"{where} is no JSON, and reading YAML needs PyYAML: pip install pyyaml"
        raise DocumentError(text) from None
    try:
        # A round trip: dates and keys that are numbers become the texts that JSON would have.
        return json.loads(json.dumps(_load_yaml(yaml, data), default=str))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as wrong:
        raise DocumentError(f"{where} is neither JSON nor YAML: {wrong}") from None


def _load_yaml(yaml: Any, data: bytes) -> object:
    """Read YAML without aliases: a few of them can stand for millions of values."""
    # That of libyaml is four times as fast as the one in Python, and is in the wheels of PyYAML.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    for event in yaml.parse(data, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not read; write $ref instead")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        # libyaml would overflow the stack of the thread.
        if depth > MAX_NESTING:
            raise yaml.YAMLError(f"more than {MAX_NESTING} levels")
    return loader(data).get_single_data()


def check_document(document: object, where: str) -> JSONObject:
    """Check that a value is a document of OpenAPI 3.0, 3.1 or 3.2, and return it.

    Raises:
        DocumentError: The value is not such a document.
    """
    if not isinstance(document, dict):
        raise DocumentError(f"{where} must be an object")
    version = document.get("openapi")
    if isinstance(version, str) and version.startswith(_VERSIONS):
        return document
    if "swagger" in document:
        text = f"{where} is Swagger {str(document['swagger'])[:20]}, which is not read; convert it"
        raise DocumentError(f"{text} to OpenAPI 3 first, with `npx swagger2openapi` or the like")
    raise DocumentError(f"{where} must be OpenAPI 3.0, 3.1 or 3.2, not {version!r}")


class ApiDocument:
    """A document of OpenAPI 3.0, 3.1 or 3.2.

    Args:
        root: The document; see `check_document`.
        url: The URL that it came from, for relative servers; empty for none.

    Attributes:
        root: See above.
        is_30: True for OpenAPI 3.0, whose schemas have keywords of their own.
    """

    def __init__(self, root: JSONObject, url: str = "") -> None:
        self.root = root
        self.is_30: bool = root["openapi"].startswith("3.0.")
        self._url = url

    def resolve(self, node: object) -> JSONObject:
        """Follow the reference that a node is, if it is one.

        Args:
            node: A path item, a parameter, a body, a response, or a reference to one.

        Raises:
            DocumentError: It leads nowhere, in circles, or to another document.
        """
        for _ in range(MAX_HOPS):
            if not isinstance(node, dict):
                raise DocumentError(f"expected an object, got {str(node)[:60]!r}")
            pointer = node.get("$ref")
            if pointer is None:
                return node
            node = self.at(pointer)
        raise DocumentError(f"$ref leads in circles: {pointer}")

    def at(self, pointer: object) -> Any:
        """Return the value at a reference: `#/components/schemas/Pet`.

        Raises:
            DocumentError: The reference leads nowhere, or to another document.
        """
        if not isinstance(pointer, str) or not pointer.startswith("#"):
            raise DocumentError(f"$ref to another document is not read: {str(pointer)[:200]}")
        found: object = self.root
        for part in pointer[1:].split("/")[1:]:
            key = unescape(unquote(part))
            if isinstance(found, Mapping) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise DocumentError(f"$ref leads nowhere: {pointer[:200]}")
        return found

    def server_of(self, *levels: Mapping[str, object]) -> str:
        """Return the base URL of an operation: that of the first server of the nearest level.

        Args:
            *levels: The operation and its path item; the document comes last.

        Raises:
            DocumentError: There is no server, or it has no absolute URL.
        """
        for level in (*levels, self.root):
            servers = level.get("servers")
            if isinstance(servers, list) and servers:
                return self._read_server(servers[0])
        # "If the servers array is empty, the default value would be a Server Object with a url
        # value of /" (OpenAPI 3.1, "OpenAPI Object").
        return self._read_server({"url": "/"})

    def _read_server(self, server: Any) -> str:
        url = server.get("url") if isinstance(server, Mapping) else None
        if not isinstance(url, str):
            raise DocumentError("a server has no url")
        variables = server.get("variables")
        for name, variable in (variables if isinstance(variables, Mapping) else {}).items():
            default = variable.get("default") if isinstance(variable, Mapping) else None
            url = url.replace(f"{{{name}}}", str(default))
        return read_base(urljoin(self._url, url))


def branches_of(document: ApiDocument, schema: object) -> Iterator[JSONObject]:
    """Iterate over a schema and all that it refers to or is combined of.

    Args:
        document: The document.
        schema: The schema; values other than objects are skipped.

    Raises:
        DocumentError: A reference leads nowhere.
    """
    waiting, seen = [schema], set[int]()
    while waiting:
        found = waiting.pop()
        if not isinstance(found, dict) or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        if "$ref" in found:
            waiting.append(document.at(found["$ref"]))
        for key in ("allOf", "anyOf", "oneOf"):
            listed = found.get(key)
            waiting += listed if isinstance(listed, list) else ()


def read_base(url: str) -> str:
    """Check the base URL of an API, and return it without the slash at its end.

    Raises:
        DocumentError: The URL is not absolute, not http or https, or has a user, query or fragment.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise DocumentError(f"not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DocumentError(f"no server is known for {url!r}; give base_url='https://…'")
    if parts.query or parts.fragment or parts.username is not None:
        raise DocumentError(f"the URL of a server has no user, query or fragment: {parts.hostname}")
    return url.rstrip("/")


def origin_of(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parts.scheme, parts.hostname or "", port

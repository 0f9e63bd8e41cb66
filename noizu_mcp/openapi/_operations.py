"""Operations of an OpenAPI document as tools: names, schemas, and the request of a call.

Nothing here does I/O: an `Operation` turns checked arguments into an `ApiRequest`, which the
provider sends.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote

import attrs

from .._log import logger
from .._media_types import is_json
from .._value import JSONObject
from ..types import Annotations
from ._bodies import FormPart, OperationBody, Payload, read_body
from ._document import ApiDocument, DocumentError
from ._parameters import BadValue, Pairs, Parameter, join, read_parameter
from ._schemas import SchemaConverter

#: Operations of one document: the largest public API has a thousand.
MAX_OPERATIONS: Final = 2000
#: Characters of the name of a tool; the APIs of models allow no more.
MAX_NAME: Final = 64
#: Characters of a description; a model reads all of them before each answer.
MAX_DESCRIPTION: Final = 2000

_METHODS: Final = (
    *("get", "put", "post", "delete", "options", "head", "patch", "trace"),
    "query",  # OpenAPI 3.2
)
_SAFE: Final = ("get", "head", "options", "trace", "query")
_IDEMPOTENT: Final = (*_SAFE, "put", "delete")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
#: Statuses whose response describes the result, in this order.
_SUCCESS: Final = ("200", "201", "202", "203", "2XX", "default")
_SLASHES: Final = re.compile(r"[/\\]")
#: Times that a segment is decoded to look at it.
MAX_DECODINGS: Final = 4
#: A path, as documents write it: some add a query, or a fragment that makes it unique.
_PATH: Final = re.compile(r"([^?#\s\\]*)(?:\?([A-Za-z0-9._~%!$&'()*+,;=:@/?-]*))?(?:#.*)?")


@attrs.frozen(kw_only=True)
class ApiRequest:
    """An HTTP request of a call.

    Attributes:
        label: The method and path of its operation, for messages.
        method: The method in capitals.
        url: The absolute URL, percent-encoded.
        headers: Names in small letters, and values.
        body: The bytes of the body; None for none.
        parts: The parts of a `multipart/form-data` body.
    """

    label: str
    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    parts: tuple[FormPart, ...] = ()

    @property
    def shown_url(self) -> str:
        """The URL without its query, which may hold secrets."""
        return self.url.partition("?")[0]


@attrs.frozen(kw_only=True)
class Operation:
    """An operation of a document.

    Attributes:
        name: The name of its tool.
        label: Its method and path: `GET /pets/{id}`.
        method: Its method in small letters.
        path: Its path, with variables.
        query: The query that its path has, percent-encoded; mostly empty.
        base_url: The URL that the path is appended to.
        title: Its summary, or None.
        description: Its summary and description, or None.
        parameters: Its parameters, by the names of arguments.
        body_argument: The name of the argument that is the body; empty without one.
        body: Its body, or None.
        security: The names of the security schemes that it needs, in groups of which one suffices.
        input_schema: The schema of the arguments.
        output_schema: The schema of the result, if that is an object; or None.
    """

    name: str
    label: str
    method: str
    path: str
    query: str
    base_url: str
    title: str | None
    description: str | None
    parameters: Mapping[str, Parameter]
    body_argument: str
    body: OperationBody | None
    security: tuple[tuple[str, ...], ...]
    input_schema: JSONObject
    output_schema: JSONObject | None

    @property
    def annotations(self) -> Annotations:
        """The hints of its tool, from its method (RFC 9110, 9.2)."""
        return Annotations(
            read_only_hint=self.method in _SAFE,
            destructive_hint=self.method not in (*_SAFE, "post"),
            idempotent_hint=self.method in _IDEMPOTENT,
            open_world_hint=True,
        )

    def request(self, arguments: Mapping[str, object]) -> ApiRequest:
        """Make the request of a call.

        Args:
            arguments: The arguments, which fit `input_schema`.

        Raises:
            BadValue: A value cannot be sent in its place, or would lead to another path.
        """
        paths: dict[str, str] = {}
        query: Pairs = []
        cookies: Pairs = []
        headers = [("accept", "application/json, */*;q=0.5")]
        for argument, parameter in self.parameters.items():
            if argument not in arguments:
                continue
            value = arguments[argument]
            if parameter.place == "path":
                paths[parameter.name] = parameter.to_path(value)
            elif parameter.place == "query":
                query += parameter.to_query(value)
            elif parameter.place == "cookie":
                cookies += parameter.to_query(value)
            else:
                headers.append((parameter.name.lower(), parameter.to_header(value)))
        if cookies:
            headers.append(("cookie", join(cookies, "; ")))
        payload = Payload()
        if self.body is not None and self.body_argument in arguments:
            payload = self.body.encode(arguments[self.body_argument])
            if payload.media_type:
                headers.append(("content-type", payload.media_type))
        pairs = "&".join(each for each in (self.query, join(query)) if each)
        url = self.base_url + self._expand(paths) + ("?" if pairs else "") + pairs
        return ApiRequest(
            label=self.label,
            method=self.method.upper(),
            url=url,
            headers=tuple(headers),
            body=payload.content,
            parts=payload.parts,
        )

    def _expand(self, values: Mapping[str, str]) -> str:
        """Fill in the variables of the path; a value must not change the path around it.

        Raises:
            BadValue: A segment would be empty, or lead to another folder.
        """
        segments = []
        for segment in self.path.split("/"):
            filled = _VARIABLE.sub(lambda found: values.get(found[1], ""), segment)
            if filled != segment and (not filled or _leads_away(filled)):
                raise BadValue(f"{segment} must not be empty, and have no part '.' or '..'")
            segments.append(filled)
        return "/".join(segments)


@attrs.frozen
class Head:
    """The beginning of an operation: enough to choose it.

    Attributes:
        name: The name of its tool.
        method: Its method in small letters.
        path: Its path, with variables.
        tags: Its tags.
        item: The path item that it is in.
        node: The operation object.
    """

    name: str
    method: str
    path: str
    tags: tuple[str, ...]
    item: JSONObject
    node: JSONObject

    @property
    def label(self) -> str:
        """Its method and path: `GET /pets/{id}`."""
        return f"{self.method.upper()} {self.path}"


def list_operations(document: ApiDocument) -> list[Head]:
    """List the operations of a document, in its order.

    Anything that is not an object is left out, with a log entry.

    Raises:
        DocumentError: There are too many, or `paths` is malformed.
    """
    paths = document.root.get("paths", {})
    if not isinstance(paths, dict):
        raise DocumentError("paths must be an object")
    heads: dict[str, Head] = {}
    for path, node in paths.items():
        try:
            item = document.resolve(node)
        except DocumentError as error:
            logger.warning("left out %s: %s", path[:200], error)
            continue
        for method in [each for each in item if each in _METHODS]:
            if len(heads) >= MAX_OPERATIONS:
                raise DocumentError(f"there are more than {MAX_OPERATIONS} operations")
            try:
                operation = document.resolve(item[method])
            except DocumentError as error:
                logger.warning("left out %s %s: %s", method.upper(), path[:200], error)
                continue
            other = f"{method} {path}"
            name = _free(_tool_name(operation.get("operationId"), other), heads)
            tags = tuple(map(str, _listed(operation, "tags")))
            rooted = path if path.startswith("/") else f"/{path}"
            heads[name] = Head(name, method, rooted, tags, item, operation)
    return list(heads.values())


def read_operations(
    document: ApiDocument,
    heads: Iterable[Head],
    base_url: str | None = None,
    given: Collection[str] = (),
) -> Iterator[Operation]:
    """Read operations of a document.

    Unusable operations are left out, with a log entry.

    Args:
        document: The document.
        heads: The operations.
        base_url: The base URL of all operations; None: that of their servers.
        given: The names, in small letters, of headers that are sent with each request: they are no
            arguments.
    """
    reader = _OperationReader(document, base_url, given)
    for head in heads:
        try:
            yield reader.read(head)
        except ValueError as error:
            logger.warning("left out %s: %s", head.label[:200], error)


class _OperationReader:
    """Reads operations."""

    def __init__(self, document: ApiDocument, base_url: str | None, given: Collection[str]) -> None:
        self._document = document
        self._base_url = base_url
        self._given = given

    def read(self, head: Head) -> Operation:
        """Read one operation.

        Raises:
            DocumentError: It needs something that is not read, or is malformed.
            ValueError: A parameter is malformed.
        """
        document, node = self._document, head.node
        split = _PATH.fullmatch(head.path)
        if split is None:
            raise DocumentError("its path has a space or a backslash, or a variable in a query")
        parameters = _name(self._parameters(head), split[1])
        body = read_body(document, node)
        body_name = _free("body", parameters) if body is not None else ""
        summary, description = _text(node.get("summary")), _text(node.get("description"))
        both = "\n\n".join(part for part in (summary, description) if part)
        return Operation(
            name=head.name,
            label=head.label,
            method=head.method,
            path=split[1],
            query=split[2] or "",
            base_url=self._base_url or document.server_of(node, head.item),
            title=summary,
            description=both[:MAX_DESCRIPTION] or None,
            parameters=parameters,
            body_argument=body_name,
            body=body,
            security=_security(node.get("security", document.root.get("security"))),
            input_schema=self._input(parameters, body_name, body),
            output_schema=self._output(node),
        )

    def _parameters(self, head: Head) -> Iterator[Parameter]:
        """Read the parameters; the operation overrides the path."""
        found: dict[tuple[str, str], Parameter] = {}
        for each in [*_listed(head.item, "parameters"), *_listed(head.node, "parameters")]:
            parameter = read_parameter(self._document.resolve(each))
            if parameter is None:
                continue
            if parameter.place != "header" or parameter.name.lower() not in self._given:
                found[parameter.place, parameter.name] = parameter
        return iter(found.values())

    def _input(
        self, parameters: Mapping[str, Parameter], body_name: str, body: OperationBody | None
    ) -> JSONObject:
        converter = SchemaConverter(self._document, is_input=True)
        properties: JSONObject = {}
        required = []
        parts: list[tuple[str, Parameter | OperationBody]] = list(parameters.items())
        if body is not None:
            parts.append((body_name, body))
        for name, part in parts:
            schema = converter.convert(part.schema)
            if part.description is not None and isinstance(schema, dict):
                # Siblings of a reference count in JSON Schema 2020-12.
                schema = {**schema, "description": part.description[:MAX_DESCRIPTION]}
            properties[name] = schema
            if part.required:
                required.append(name)
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            schema["required"] = required
        if converter.definitions:
            schema["$defs"] = converter.definitions
        return schema

    def _output(self, node: JSONObject) -> JSONObject | None:
        """Give the schema of the result, if the API promises an object of JSON; or None."""
        responses = node.get("responses")
        found = responses if isinstance(responses, dict) else {}
        status = next((each for each in _SUCCESS if each in found), None)
        if status is None:
            return None
        content = self._document.resolve(found[status]).get("content")
        kinds = content if isinstance(content, dict) else {}
        media = next((media for kind, media in kinds.items() if is_json(kind)), None)
        if not isinstance(media, dict) or "schema" not in media:
            return None
        converter = SchemaConverter(self._document, is_input=False)
        schema = converter.convert(media["schema"])
        target = schema
        if isinstance(schema, dict) and "$ref" in schema:
            target = converter.definitions[schema["$ref"].rpartition("/")[2]]
        if not isinstance(target, dict) or target.get("type") != "object":
            return None
        # The root of an output schema is an object itself, not a reference to one.
        return {**target, "$defs": converter.definitions} if converter.definitions else target


def _leads_away(segment: str) -> bool:
    """Tell whether some server or proxy could read a step to another folder in a segment.

    Encoded slashes and dots count: many decode before they look, and some of them twice.
    """
    for _ in range(MAX_DECODINGS):
        if any(part in (".", "..") for part in _SLASHES.split(segment)):
            return True
        segment = unquote(segment)
    return False


def _name(parameters: Iterable[Parameter], path: str) -> dict[str, Parameter]:
    """Give each parameter the name of an argument; equal names get their place added.

    Raises:
        DocumentError: A variable of the path has no parameter.
    """
    listed = list(parameters)
    declared = {each.name for each in listed if each.place == "path"}
    missing = [name for name in _VARIABLE.findall(path) if name not in declared]
    if missing:
        raise DocumentError(f"no parameter describes {{{missing[0]}}}")
    found: dict[str, Parameter] = {}
    for each in listed:
        name = each.name if each.name not in found else _free(f"{each.name}_{each.place}", found)
        found[name] = each
    return found


def _free(name: str, taken: Iterable[str]) -> str:
    """Return the name, with a number if it is taken."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name[: MAX_NAME - 5]}_{number}"
    return found


def _tool_name(operation_id: object, other: str) -> str:
    """Make the name of a tool; a name that is too long ends in a digest of the whole."""
    given = operation_id if isinstance(operation_id, str) else other
    name = _UNFIT.sub("_", given).strip("_") or "operation"
    if len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - 9]}_{hashlib.sha256(given.encode()).hexdigest()[:8]}"


def _security(groups: object) -> tuple[tuple[str, ...], ...]:
    listed = groups if isinstance(groups, list) else []
    return tuple(tuple(each) for each in listed if isinstance(each, dict))


def _listed(node: Mapping[str, object], key: str) -> list[object]:
    found = node.get(key)
    return found if isinstance(found, list) else []


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None

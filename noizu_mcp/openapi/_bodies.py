"""Bodies of requests: the media type of an operation, and the bytes or parts of a value.

Source: OpenAPI 3.1, "Media Type Object" and "Encoding Object"; RFC 7578 for parts. A file is
base64 in the arguments of a tool, since JSON has no bytes.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

import attrs

from .._media_types import essence_of, is_concrete, is_json, is_text
from .._util import json_text
from .._value import JSONObject
from ._document import ApiDocument, DocumentError, branches_of
from ._parameters import BadValue, Pairs, Parameter, join, quoted, read_parameter, text_of
from ._schemas import BASE64, is_binary

_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_BYTES: Final = "application/octet-stream"
#: Added to the description of a form with files.
_ABOUT_FILES: Final = (
    "Files are base64, or data URLs with their type and name: data:text/csv;name=a.csv;base64,…"
)
_DATA_URL: Final = re.compile(r"data:([^;,]*)((?:;[^;,]*)*?);base64,", re.ASCII | re.IGNORECASE)
_SLASHES: Final = re.compile(r"[/\\]")


@attrs.frozen
class FormPart:
    """A part of a body of the type `multipart/form-data`.

    Attributes:
        name: The name of the field.
        content: The bytes.
        media_type: Their media type; None for plain text.
        filename: The name of the file; None for a field that is not a file.
        encoding: The `Content-Transfer-Encoding`; None for none.
    """

    name: str
    content: bytes
    media_type: str | None = None
    filename: str | None = None
    encoding: str | None = None


@attrs.frozen
class Payload:
    """The body of a request.

    Attributes:
        media_type: The media type; empty for parts, whose boundary belongs to it.
        content: The bytes; None for parts.
        parts: The parts of a form.
    """

    media_type: str = ""
    content: bytes | None = None
    parts: tuple[FormPart, ...] = ()


@attrs.frozen
class _FormField:
    """A field of a form.

    Attributes:
        is_file: True if its values are base64 of bytes.
        media_type: The media type that the document gives it; None for none.
        parameter: Writes its values as pairs of a query; None if the document gives no style.
        encoding: The encoding of a text that stays encoded on the way; None for none.
    """

    is_file: bool = False
    media_type: str | None = None
    parameter: Parameter | None = None
    encoding: str | None = None

    def pairs(self, name: str, value: object) -> Pairs:
        """Write the pairs of a form that is a query."""
        if self.parameter is not None:
            return self.parameter.to_query(value)
        return [(quoted(name), quoted(each)) for each in self._values(value)]

    def parts(self, name: str, value: object) -> Iterator[FormPart]:
        """Write the parts of a form that may have files.

        Raises:
            BadValue: A file is not base64.
        """
        given = self.media_type if is_concrete(self.media_type) else None
        for each in self._values(value):
            if not self.is_file:
                # Objects are JSON unless the document says otherwise.
                as_json = self._is_json or isinstance(each, Mapping | list)
                kind = given or ("application/json" if as_json else None)
                text = json_text(each) if as_json else text_of(each)
                yield FormPart(name, text.encode(), kind, encoding=self.encoding)
            elif each is not None:
                content, kind, filename = _read_file(each, name)
                # Many servers take a part without a file name for a text.
                yield FormPart(name, content, kind or given or _BYTES, filename or name)

    @property
    def _is_json(self) -> bool:
        return self.media_type is not None and is_json(self.media_type)

    def _values(self, value: object) -> list[object]:
        return value if isinstance(value, list) and not self._is_json else [value]


#: A field that the document does not describe.
_OTHER: Final = _FormField()


@attrs.frozen(kw_only=True)
class OperationBody:
    """The body that an operation takes.

    Attributes:
        media_type: Its media type.
        required: True if it must be sent.
        description: Its description, or None.
        schema: Its schema, as it stands in the document.
        fields: The fields of a form that the document describes, by name.
    """

    media_type: str
    required: bool
    description: str | None
    schema: object
    fields: Mapping[str, _FormField]

    def encode(self, value: object) -> Payload:
        """Write the body.

        Raises:
            BadValue: The value cannot be written in this media type.
        """
        kind = self.media_type
        if is_json(kind):
            return Payload(kind, json_text(value).encode())
        if kind in (_FORM, _MULTIPART):
            if not isinstance(value, Mapping):
                raise BadValue("the body of a form must be an object")
            fields = [(self.fields.get(name, _OTHER), name, each) for name, each in value.items()]
            if kind == _FORM:
                pairs = [pair for field, name, each in fields for pair in field.pairs(name, each)]
                return Payload(kind, join(pairs).encode())
            parts = [part for field, name, each in fields for part in field.parts(name, each)]
            return Payload(parts=tuple(parts))
        given = kind if is_concrete(kind) else None
        if is_text(kind):
            return Payload(given or "text/plain", text_of(value).encode())
        content, found, _ = _read_file(value, "the body")
        return Payload(given or found or _BYTES, content)


def read_body(document: ApiDocument, node: JSONObject) -> OperationBody | None:
    """Read the body of an operation.

    Args:
        document: The document.
        node: The operation.

    Returns:
        The body; None if it is missing, or optional and cannot be sent.

    Raises:
        DocumentError: It cannot be sent, or is malformed.
        ValueError: A field has an unknown style.
    """
    if "requestBody" not in node:
        return None
    body = document.resolve(node["requestBody"])
    content = body.get("content")
    kinds = content if isinstance(content, dict) else {}
    usable = [kind for kind, media in kinds.items() if isinstance(media, dict)]
    # A form beside JSON is not read, and may have any mistake.
    described = {
        kind: _fields(document, kinds[kind])
        for kind in usable
        if essence_of(kind) in (_FORM, _MULTIPART) and not any(map(is_json, usable))
    }
    required = body.get("required") is True
    kind = _choose(usable, described)
    if kind is None:
        if not required:
            return None
        raise DocumentError(f"its body has no media type that is sent here: {list(kinds)}")
    schema, fields = kinds[kind].get("schema", {}), described.get(kind, {})
    text = body.get("description")
    about = [text.strip()] if isinstance(text, str) and text.strip() else []
    if _takes_files(kind, fields):
        about.append(_ABOUT_FILES)
    if kind in described:
        kind = essence_of(kind)
    elif essence_of(kind) in ("*/*", "application/*"):
        # Documents that were converted from Swagger have this for bodies of JSON.
        kind = _BYTES if any(map(is_binary, branches_of(document, schema))) else "application/json"
    if kind not in described and not is_json(kind):
        schema = {"type": "string"} if is_text(kind) else {"type": "string", **BASE64}
    return OperationBody(
        media_type=kind,
        required=required,
        description="\n\n".join(about) or None,
        schema=schema,
        fields=fields,
    )


def _choose(kinds: Sequence[str], described: Mapping[str, Mapping[str, _FormField]]) -> str | None:
    """Choose the media type of a body: JSON before all others, and a form that can take files."""
    ranks: tuple[Callable[[str], bool], ...] = (
        is_json,
        lambda kind: _takes_files(kind, described.get(kind, {})),
        lambda kind: essence_of(kind) == _FORM,
        lambda kind: essence_of(kind) == _MULTIPART,
        is_text,
        lambda kind: essence_of(kind) == _BYTES,
        lambda kind: not essence_of(kind).startswith("multipart/"),
    )
    return next((kind for fits in ranks for kind in kinds if fits(kind)), None)


def _takes_files(kind: str, fields: Mapping[str, _FormField]) -> bool:
    return essence_of(kind) == _MULTIPART and any(field.is_file for field in fields.values())


def _fields(document: ApiDocument, media: JSONObject) -> dict[str, _FormField]:
    """Read the fields of a form."""
    given = media.get("encoding")
    encodings = given if isinstance(given, dict) else {}
    found: dict[str, _FormField] = {}
    for branch in branches_of(document, media.get("schema")):
        properties = branch.get("properties")
        for name, schema in (properties if isinstance(properties, dict) else {}).items():
            encoding = encodings.get(name)
            found[name] = _field(document, name, schema, encoding or {})
    return found


def _field(document: ApiDocument, name: str, schema: object, encoding: object) -> _FormField:
    if not isinstance(encoding, dict):
        raise DocumentError(f"the encoding of {name} must be an object")
    branches = list(branches_of(document, schema))
    for branch in branches[:]:
        branches += branches_of(document, branch.get("items"))
    kind = encoding.get("contentType")
    kind = kind if isinstance(kind, str) else None
    style = {key: encoding[key] for key in ("style", "explode") if key in encoding}
    encoded = [each["contentEncoding"] for each in branches if "contentEncoding" in each]
    return _FormField(
        is_file=any(map(is_binary, branches)),
        media_type=kind,
        parameter=read_parameter({"name": name, "in": "query", **style}) if style else None,
        encoding=str(encoded[0]) if encoded else None,
    )


def _read_file(value: object, name: str) -> tuple[bytes, str | None, str | None]:
    """Read a file from base64 or a data URL: its bytes, its type and name if they are known.

    Raises:
        BadValue: The value is neither.
    """
    if not isinstance(value, str):
        raise BadValue(f"{name} must be base64")
    text, found = value, _DATA_URL.match(value)
    kind = filename = None
    if found is not None:
        text = text[found.end() :]
        kind = found[1] if is_concrete(found[1]) else None
        for pair in found[2].split(";"):
            key, _, given = pair.partition("=")
            if key.lower() == "name":
                filename = _SLASHES.split(unquote(given))[-1] or None
    try:
        return base64.b64decode(text, validate=True), kind, filename
    except (binascii.Error, ValueError):
        raise BadValue(f"{name} must be base64") from None

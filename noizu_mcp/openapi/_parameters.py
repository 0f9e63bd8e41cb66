"""Parameters of OpenAPI operations: their place in a request, and the text of their values.

Source: OpenAPI 3.1, "Parameter Object", "Style Values" and "Style Examples".
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote

import attrs

from .._util import json_text
from .._value import JSONObject

#: The style of each place that names none.
_STYLES: Final = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_STYLES_OF: Final = {
    "path": {"simple", "label", "matrix"},
    "query": {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
    "header": {"simple"},
    "cookie": {"form"},
}
#: The characters between the values of an array or an object.
_DELIMITERS: Final = {"spaceDelimited": "%20", "pipeDelimited": "|"}
#: Headers that are not parameters ("Parameter Object", `name`), and headers of the connection.
_OTHER_HEADERS: Final = frozenset(
    {"accept", "content-type", "authorization", "host", "content-length", "transfer-encoding"}
    | {"connection", "upgrade", "te", "trailer", "expect", "cookie", "accept-encoding"}
    | {"proxy-authorization", "proxy-connection", "keep-alive"}
)
#: Levels of an object in brackets.
MAX_DEPTH: Final = 32
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER: Final = re.compile(r"[\x20-\x7e]*")

Pairs = list[tuple[str, str]]


class BadValue(ValueError):
    """A value that cannot be sent in its place; the text is for the model."""


@attrs.frozen
class Parameter:
    """A parameter of an operation.

    Attributes:
        name: Its name on the wire.
        place: `path`, `query`, `header` or `cookie`.
        style: The style of its text.
        explode: True to write each value of an array or an object by itself.
        as_json: True if it has a media type of JSON instead of a style.
        required: True if it must be sent.
        description: Its description, or None.
        schema: Its schema, as it stands in the document.
    """

    name: str
    place: str
    style: str
    explode: bool
    as_json: bool
    required: bool
    description: str | None
    schema: object

    def to_path(self, value: object) -> str:
        """Write the text of a path parameter, percent-encoded."""
        if self.as_json:
            return quote(json_text(value), safe="")
        name = quote(self.name, safe="")
        pairs, is_object = _parts(value)
        texts = [f"{key}={text}" if is_object else text for key, text in pairs]
        if self.style == "label":
            return "." + (".".join(texts) if self.explode else _flat(pairs, is_object=is_object))
        if self.style == "matrix":
            if not self.explode or not isinstance(value, list | Mapping):
                return f";{name}={_flat(pairs, is_object=is_object)}"
            return "".join(f";{text}" if is_object else f";{name}={text}" for text in texts)
        return ",".join(texts) if self.explode else _flat(pairs, is_object=is_object)

    def to_query(self, value: object) -> Pairs:
        """Write the pairs of a query parameter or a cookie, percent-encoded."""
        name = quote(self.name, safe="")
        if self.as_json:
            return [(name, quote(json_text(value), safe=""))]
        pairs, is_object = _parts(value)
        if self.style == "deepObject":
            return list(_deep(name, value))
        if self.explode and isinstance(value, list | Mapping):
            return pairs if is_object else [(name, text) for _, text in pairs]
        flat = _flat(pairs, is_object=is_object, delimiter=_DELIMITERS.get(self.style, ","))
        return [(name, flat)]

    def to_header(self, value: object) -> str:
        """Write the value of a header.

        Raises:
            BadValue: It has characters that a header must not have.
        """
        if self.as_json:
            text = json_text(value)
        elif isinstance(value, Mapping):
            join = "=" if self.explode else ","
            text = ",".join(f"{key}{join}{text_of(each)}" for key, each in value.items())
        elif isinstance(value, list):
            text = ",".join(map(text_of, value))
        else:
            text = text_of(value)
        if not _HEADER.fullmatch(text):
            raise BadValue(f"{self.name}: a header has printable ASCII characters only")
        return text


def read_parameter(node: JSONObject) -> Parameter | None:
    """Read a parameter.

    Args:
        node: The parameter object, references resolved.

    Returns:
        The parameter; None if it is ignored, as `Authorization` is.

    Raises:
        ValueError: It is malformed, or has a style that its place does not have.
    """
    name, place = node.get("name"), node.get("in")
    if not isinstance(name, str) or not name or place not in [*_STYLES]:
        raise ValueError(f"a parameter needs a name and a place, got {str(node)[:80]!r}")
    if place == "header" and (name.lower() in _OTHER_HEADERS or not _TOKEN.fullmatch(name)):
        return None
    content = node.get("content")
    media: object = next(iter(content.values()), {}) if isinstance(content, Mapping) else None
    style = node.get("style", _STYLES[place])
    if style not in [*_STYLES_OF[place]]:  # it may be anything, also what has no hash
        raise ValueError(f"the parameter {name} in {place} has the style {str(style)[:40]!r}")
    description = node.get("description")
    return Parameter(
        name=name,
        place=place,
        style=style,
        explode=node.get("explode", style in ("form", "deepObject")) is True,
        as_json=media is not None,
        required=place == "path" or node.get("required") is True,
        description=description if isinstance(description, str) else None,
        schema=(media if isinstance(media, Mapping) else node).get("schema", {}),
    )


def text_of(value: object) -> str:
    """Write a value as the text of a parameter: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else "" if value is None else json_text(value)


def _deep(name: str, value: object, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Write pairs of a `deepObject`, with a key in brackets for each level: `a[b][c]=1`.

    The specification leaves lists open. Most servers read `a[]=1` for values and `a[0][b]=1` for
    objects (PHP, qs, Stripe).

    Raises:
        BadValue: The value is nested too deeply.
    """
    if depth > MAX_DEPTH:
        raise BadValue(f"a parameter is nested in more than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _deep(f"{name}%5B{quoted(key)}%5D", each, depth + 1)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            key = index if isinstance(each, Mapping | list) else ""
            yield from _deep(f"{name}%5B{key}%5D", each, depth + 1)
    else:
        yield name, quoted(value)


def _parts(value: object) -> tuple[Pairs, bool]:
    """Split a value into keys and texts, percent-encoded; tell whether it is an object."""
    if isinstance(value, Mapping):
        return [(quoted(key), quoted(each)) for key, each in value.items()], True
    values = value if isinstance(value, list) else [value]
    return [("", quoted(each)) for each in values], False


def quoted(value: object) -> str:
    """Write a value as the percent-encoded text of a parameter."""
    return quote(text_of(value), safe="")


def join(pairs: Pairs, delimiter: str = "&") -> str:
    """Write pairs as one text: a query, a form, or cookies."""
    return delimiter.join(f"{name}={text}" for name, text in pairs)


def _flat(pairs: Pairs, *, is_object: bool, delimiter: str = ",") -> str:
    return delimiter.join(f"{k}{delimiter}{t}" if is_object else t for k, t in pairs)

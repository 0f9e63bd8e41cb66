"""Media types, as far as their names say how a body is read and written."""

import re
from typing import Final

#: Ends of media types beside `text/*` whose bodies are texts.
_TEXTS: Final = (
    *("/xml", "+xml", "/yaml", "/x-yaml", "+yaml", "/x-ndjson"),
    *("/javascript", "/graphql", "/x-www-form-urlencoded"),
)
_NAME: Final = r"[A-Za-z0-9!#$&^_.+-]+"
_CONCRETE: Final = re.compile(rf"{_NAME}/{_NAME}(\s*;[\x20-\x2b\x2d-\x7e]*)?")


def is_json(media_type: str) -> bool:
    """Tell whether a media type is JSON: `application/json`, `application/problem+json`."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def is_text(media_type: str) -> bool:
    """Tell whether a body of a media type is text for a person or a model."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind.endswith(_TEXTS) or is_json(kind)


def is_concrete(media_type: str | None) -> bool:
    """Tell whether a text is one media type that can be sent: no range, no list."""
    return media_type is not None and _CONCRETE.fullmatch(media_type) is not None

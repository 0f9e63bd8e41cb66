"""Exceptions by which a class or pydantic refuses a value → violations, in our own words."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..._pointer import Path
from ..._util import shorten
from ..declare._nodes import Pydantic
from ..jsonschema._values import kind_and_value
from ..jsonschema._violation import Violation

#: The exceptions by which a constructor refuses a value; the error of pydantic is a ValueError.
REFUSALS: Final = (ValueError, TypeError, ArithmeticError)
# Characters of an error text that are reported: a constructor may quote the whole value.
_MAX_TEXT = 500


def refusal(path: Path, value: object, text: str) -> Violation:
    """Return the violation of a value that its class refuses."""
    return Violation(path, "validator", " ".join(text.split()), got=value)


def reason_of(error: Exception) -> str:
    """Return the text of an exception; its name if it has none."""
    # attrs validators raise with the text first, and with themselves after it.
    first = error.args[0] if error.args else ""
    text = first if isinstance(first, str) and first else f"refused: {type(error).__name__}"
    return shorten(text, _MAX_TEXT)


def pydantic_violations(node: Pydantic, value: object, path: Path) -> Iterator[Violation]:
    """Yield the violations that pydantic finds in a value which its schema accepts.

    Args:
        node: The type, of an input.
        value: The value.
        path: The place of the value.
    """
    try:
        node.check(value)
    except REFUSALS as error:
        # A validator may also raise errors that pydantic passes on.
        if not hasattr(error, "errors"):
            yield refusal(path, value, reason_of(error))
            return
        for each in error.errors():
            yield _told_by_pydantic(each, value, path)


def _told_by_pydantic(error: Mapping[str, Any], value: Any, path: Path) -> Violation:
    """Return an error of pydantic without its name and its address on the web.

    Args:
        error: The error, as `ValidationError.errors()` tells it.
        value: The value that was validated.
        path: The place of that value.
    """
    for step in error["loc"]:
        inside = step in value if isinstance(value, dict) else False
        if isinstance(value, list) and type(step) is int:
            inside = step < len(value)
        # Other steps name a branch of a union, or a validator.
        if inside:
            value, path = value[step], (*path, step)
    raised = error.get("ctx", {}).get("error")
    if error["type"] == "missing":
        return Violation((*path, error["loc"][-1]), "required", "required, but missing")
    text = reason_of(raised) if isinstance(raised, Exception) else error["msg"]
    text = text.replace("Input should be", "expected", 1)
    return refusal(path, value, f"{text}, got {kind_and_value(value)}")

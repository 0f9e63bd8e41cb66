"""Types without a JSON Schema: types of other libraries in results, and advice for all others.

The libraries are large, so their types are known by their names. The file is loaded with the first
such type.
"""

from collections.abc import Callable, Mapping
from typing import Final, get_origin

from ._field import Marker
from ._nodes import Array, Map, Node, Scalar, find_named

# The types that people write for which JSON has another: by the package and the name of the class.
_INSTEAD: Final[Mapping[tuple[str, str], str]] = {
    ("pandas", "DataFrame"): "write list[dict[str, Any]], one for each row",
    ("polars", "DataFrame"): "write list[dict[str, Any]], one for each row",
    ("polars", "LazyFrame"): "write list[dict[str, Any]], one for each row",
    ("pandas", "Series"): "write list[float], or a list of another type",
    ("polars", "Series"): "write list[float], or a list of another type",
    ("numpy", "ndarray"): "write list[float], or a list of lists",
    ("numpy", "bool"): "write bool",
    ("numpy", "integer"): "write int",
    ("numpy", "floating"): "write float",
    ("PIL", "Image"): "write bytes, which are sent as base64",
    ("_io", "_IOBase"): "write Path, str or bytes",
    ("io", "IOBase"): "write Path, str or bytes",
    ("typing", "IO"): "write Path, str or bytes",
    ("re", "Pattern"): "write str",
    ("datetime", "tzinfo"): "write str, the name of the zone",
}
_TYPES: Final = (
    "use str, int, float, bool, an Enum, Literal, list, dict, a Schema or attrs class,"
    " a dataclass, a TypedDict or a pydantic model"
)


def no_form(annotation: object) -> str:
    """Return the problem of a type that has no JSON Schema, with the type to write."""
    if isinstance(annotation, Marker):
        hint = "write the type here, and the field after the ="
        return f"{annotation!r} has no JSON Schema; {hint}"
    cls = get_origin(annotation) or annotation
    advice = find_named(cls, _INSTEAD) if isinstance(cls, type) else None
    shown = getattr(annotation, "__qualname__", None) or str(annotation)
    package = cls.__module__.partition(".")[0] if isinstance(cls, type) else ""
    if package in ("pandas", "polars", "numpy", "PIL"):
        shown = f"{package}.{shown}"  # two libraries have a DataFrame
    return f"{shown} has no JSON Schema; {advice or _TYPES}"


# The results that are turned into JSON, by the package and the name of the class.
_RESULTS: Final[Mapping[tuple[str, str], Callable[[], Node]]] = {
    ("pandas", "DataFrame"): lambda: Array(Map(Scalar("string"), Node())),
    ("polars", "DataFrame"): lambda: Array(Map(Scalar("string"), Node())),
    ("pandas", "Series"): lambda: Array(Node()),
    ("pandas", "Index"): lambda: Array(Node()),
    ("polars", "Series"): lambda: Array(Node()),
    ("numpy", "ndarray"): lambda: Array(Node()),
    ("numpy", "bool"): lambda: Scalar("boolean"),
    ("numpy", "integer"): lambda: Scalar("integer"),
    ("numpy", "floating"): lambda: Scalar("number"),
}


def result_node(annotation: object) -> Node | None:
    """Return the node of a type in an output that is turned into JSON; None for any other."""
    cls = get_origin(annotation) or annotation
    make = find_named(cls, _RESULTS) if isinstance(cls, type) else None
    return make and make()

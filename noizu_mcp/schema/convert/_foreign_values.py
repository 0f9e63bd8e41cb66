"""Values of numpy, pandas, polars and pydantic → plain Python values.

Classes are recognised by name: the libraries are large, and this package never imports them. The
file is loaded with the first such value, or the first value that has no JSON form.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..declare._nodes import find_named

# Units of numpy that are finer than microseconds, the unit of `datetime`.
_FINE: Final = ("ns", "ps", "fs", "as")


def plain_converter(cls: type) -> Callable[[object], object] | None:
    """Return the function that turns values of a class into dicts, lists and scalars.

    Args:
        cls: The class.

    Returns:
        The function; None for a class that has no JSON form, or is also one of Python's.
    """
    found = find_named(cls, _CONVERTERS)
    if found is not None or not hasattr(cls, "__get_pydantic_core_schema__"):
        return found
    # A secret, a URL: pydantic knows how to write it.
    write = sys.modules["pydantic"].TypeAdapter(cls).dump_python
    return lambda value: write(value, mode="json", warnings=False)


def _scalar(value: Any) -> Any:
    """Write a number, a text or a time of numpy."""
    if value.dtype.kind in "mM":
        return _exact_time(value).item()
    made = value.item()
    if type(made) is type(value):
        raise TypeError(no_json(value))  # `longdouble` has no type of Python
    return made


def _array(value: Any) -> object:
    if value.dtype.kind in "mM":
        value = _exact_time(value)
    return value.tolist()


def _exact_time(value: Any) -> Any:
    """Return times of numpy in a unit for which Python has a class; else they become numbers."""
    unit = sys.modules["numpy"].datetime_data(value.dtype)[0]
    name = "datetime64" if value.dtype.kind == "M" else "timedelta64"
    return value.astype(f"{name}[us]") if unit in _FINE else value


def _frame(value: Any) -> object:
    """Write a frame of pandas as its rows; the index is left out."""
    if not value.columns.is_unique:
        raise ValueError("two columns of the DataFrame have one name")
    return _without_missing(value).to_dict("records")


def _series(value: object) -> Any:
    return _without_missing(value).tolist()


def _without_missing(value: Any) -> Any:
    # pandas writes a missing value as NaN, NaT or NA.
    return value.astype(object).where(value.notna(), None)


_CONVERTERS: Final[Mapping[tuple[str, str], Callable[[Any], object]]] = {
    ("numpy", "generic"): _scalar,
    ("numpy", "ndarray"): _array,
    ("pandas", "DataFrame"): _frame,
    ("pandas", "Series"): _series,
    ("pandas", "Index"): lambda value: _series(value.to_series()),
    ("pandas", "NAType"): lambda _: None,
    ("pandas", "NaTType"): lambda _: None,
    ("polars", "DataFrame"): lambda value: value.to_dicts(),
    ("polars", "Series"): lambda value: value.to_list(),
}

# The form to return instead, by the package and the name of a class.
_INSTEAD: Final[Mapping[tuple[str, str], str]] = {
    ("polars", "LazyFrame"): "return its frame, .collect()",
    ("PIL", "Image"): "return Content.image(…)",
    ("matplotlib", "Figure"): "return Content.image(…)",
    ("matplotlib", "Axes"): "return Content.image(….figure)",
    ("builtins", "generator"): "return a list",
    ("builtins", "map"): "return a list",
    ("builtins", "filter"): "return a list",
    ("builtins", "zip"): "return a list",
    ("builtins", "range"): "return a list",
    ("builtins", "complex"): "return its two parts",
}
_FORMS: Final = "return JSON values, an attrs class, a dataclass, a pydantic model, or Content"


def no_json(value: object) -> str:
    """Return the problem of a value that has no JSON form: its type, and the form to return."""
    cls = type(value)
    name = cls.__qualname__
    if cls.__module__ != "builtins":
        name = f"{cls.__module__}.{name}"
    return f"{name} has no JSON form; {find_named(cls, _INSTEAD) or _FORMS}"

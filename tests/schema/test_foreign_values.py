"""Values of numpy, pandas and polars in results, with stand-ins and with the libraries."""

import datetime as dt
import json
import sys
from decimal import Decimal
from math import isnan
from types import SimpleNamespace

import pydantic
import pytest
from pydantic_core import core_schema

from noizu_mcp.schema import dump_value, read_shape


def stand_in(package, *names, **members):
    """Make a class that looks like one of a library; each name is a base of the one before."""
    made = object
    for name in reversed(names):
        made = type(name, (made,), {"__module__": f"{package}.core", **members})
    return made


def output_of(annotation):
    shape, faults = read_shape(annotation, input=False)
    assert [fault.text for fault in faults] == []
    return shape.schema


def refusal_of(annotation, **options):
    shape, (fault,) = read_shape(annotation, **options)
    assert shape is None
    return fault.text


# By name, with classes that only resemble them


def test_scalars_of_numpy_by_name():
    """A number becomes a Python number; a type that Python lacks is refused."""
    scalar = stand_in("numpy", "float64", "floating", "generic", item=lambda self: 1.5)()
    scalar.dtype = SimpleNamespace(kind="f")
    long = stand_in("numpy", "longdouble", "generic", item=lambda self: self)()
    long.dtype = SimpleNamespace(kind="f")

    assert dump_value([scalar]) == [1.5]
    with pytest.raises(TypeError, match=r"numpy\.core\.longdouble has no JSON form"):
        dump_value(long)


def test_arrays_of_numpy_by_name(monkeypatch):
    """An array becomes a list; times need a unit that Python has."""
    array = stand_in("numpy", "ndarray", tolist=lambda self: [[1, 2], [3, 4]])()
    array.dtype = SimpleNamespace(kind="i")
    day = stand_in("numpy", "datetime64", "generic", item=lambda self: dt.date(2026, 1, 1))()
    day.dtype = SimpleNamespace(kind="M", unit="D")
    fine = stand_in("numpy", "ndarray", tolist=lambda self: [self.unit])()
    fine.dtype = SimpleNamespace(kind="m", unit="ns")
    fine.astype = lambda unit: setattr(fine, "unit", unit) or fine
    numpy = SimpleNamespace(datetime_data=lambda dtype: (dtype.unit, 1))
    monkeypatch.setitem(sys.modules, "numpy", numpy)

    assert dump_value(array) == [[1, 2], [3, 4]]
    assert dump_value(day) == "2026-01-01"
    assert dump_value(fine) == ["timedelta64[us]"]


class Column:
    """A column of numbers, in which missing values are None."""

    def __init__(self, values):
        self.values = values

    def astype(self, kind):
        assert kind is object
        return self

    def notna(self):
        return [not isnan(value) for value in self.values]

    def where(self, present, other):
        pairs = zip(self.values, present, strict=True)
        return type(self)([value if there else other for value, there in pairs])

    def tolist(self):
        return self.values

    def to_series(self):
        return self


def test_series_and_frames_of_pandas_by_name():
    """Rows have no index; missing values are null; duplicate columns are refused."""
    nan = float("nan")

    class Frame(Column):
        columns = SimpleNamespace(is_unique=True)

        def to_dict(self, form):
            assert form == "records"
            return [{"a": value} for value in self.values]

    for name, base in (("Series", Column), ("Index", Column), ("DataFrame", Frame)):
        made = type(name, (base,), {"__module__": "pandas"})([1.0, nan])
        rows = [{"a": 1.0}, {"a": None}] if base is Frame else [1.0, None]
        assert dump_value(made) == rows
    made.columns = SimpleNamespace(is_unique=False)
    with pytest.raises(ValueError, match="two columns of the DataFrame have one name"):
        dump_value(made)
    for name in ("NAType", "NaTType"):
        assert dump_value([stand_in("pandas", name)()]) == [None]


def test_frames_of_polars_by_name():
    """Rows and lists are made by polars; a lazy frame must be collected first."""
    frame = stand_in("polars", "DataFrame", to_dicts=lambda self: [{"a": dt.date(2026, 1, 1)}])()
    series = stand_in("polars", "Series", to_list=lambda self: [Decimal(1)])()
    lazy = stand_in("polars", "LazyFrame")()

    assert dump_value(frame) == [{"a": "2026-01-01"}]
    assert dump_value(series) == ["1"]
    with pytest.raises(TypeError, match=r"LazyFrame has no JSON form; return its frame, \.collect"):
        dump_value(lazy)


def test_types_of_pydantic():
    """They are dumped by pydantic, so secrets are masked."""
    assert dump_value(pydantic.SecretStr("word")) == "**********"
    assert dump_value([pydantic.HttpUrl("http://x.example")]) == ["http://x.example/"]


def test_types_that_pydantic_can_describe():
    """Types of other libraries with pydantic support are dumped by pydantic."""

    class Oid:
        @classmethod
        def __get_pydantic_core_schema__(cls, source, handler):
            write = core_schema.plain_serializer_function_ser_schema(lambda value: "oid")
            return core_schema.any_schema(serialization=write)

    assert dump_value({"id": Oid()}) == {"id": "oid"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((n for n in ()), "generator has no JSON form; return a list"),
        (range(3), "range has no JSON form; return a list"),
        (1j, "complex has no JSON form; return its two parts"),
        (object(), "object has no JSON form; return JSON values, an attrs class"),
        (
            stand_in("PIL", "PngImage", "Image")(),
            "PngImage has no JSON form; return Content.image(",
        ),
        (stand_in("matplotlib", "Figure")(), "Figure has no JSON form; return Content.image("),
        (stand_in("numpy", "dtype")(), "numpy.core.dtype has no JSON form; return JSON values"),
    ],
)
def test_what_has_no_form(value, text):
    """The error has the type, and the form to return."""
    with pytest.raises(TypeError) as caught:
        dump_value({"a": [value]})
    assert text in str(caught.value)


# As annotations

FRAME, SERIES = stand_in("pandas", "DataFrame", "NDFrame"), stand_in("polars", "Series", "Base")
ARRAY = stand_in("numpy", "ndarray", "Base")
FLOAT, BOOL = (
    stand_in("numpy", "float64", "floating", "generic"),
    stand_in("numpy", "bool_", "generic"),
)


def test_they_are_annotations_of_results():
    """A frame is a list of objects, an array and a series are lists, a scalar is a number."""
    assert output_of(FRAME) == {"type": "array", "items": {"type": "object"}}
    assert output_of(SERIES) == {"type": "array"}
    assert output_of(ARRAY) == {"type": "array"}
    assert output_of(FLOAT) == {"type": "number"}
    assert output_of(BOOL) == {"type": "boolean"}
    assert output_of(dict[str, FRAME])["additionalProperties"]["type"] == "array"


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (FRAME, "pandas.DataFrame has no JSON Schema; write list[dict[str, Any]]"),
        (SERIES, "polars.Series has no JSON Schema; write list[float]"),
        (ARRAY, "numpy.ndarray has no JSON Schema; write list[float], or a list of lists"),
        (FLOAT, "numpy.float64 has no JSON Schema; write float"),
        (BOOL, "numpy.bool_ has no JSON Schema; write bool"),
        (stand_in("PIL", "Image", "Base"), "PIL.Image has no JSON Schema; write bytes"),
        (list[FRAME], "pandas.DataFrame has no JSON Schema; write list[dict[str, Any]]"),
        (complex, "complex has no JSON Schema; use str, int"),
    ],
)
def test_they_are_no_parameters(annotation, text):
    """The error has the type, and the one to write."""
    assert refusal_of({"a": annotation}).startswith(text)


# The libraries themselves, where they are installed


def test_numpy_itself():
    """Scalars and arrays of every kind are dumped; NaN stays, and the contract refuses it."""
    np = pytest.importorskip("numpy")
    shown = {
        "int": np.int64(3),
        "float": np.float32(0.5),
        "bool": np.bool_(True),
        "text": np.str_("a"),
        "day": np.datetime64("2026-01-02"),
        "time": np.datetime64("2026-01-02T03:04:05.123456789"),
        "none": np.datetime64("NaT"),
        "span": np.timedelta64(90, "m"),
        "fine": np.timedelta64(1500, "ns"),
        "matrix": np.array([[1, 2], [3, 4]], dtype=np.uint8),
        "floats": np.array([0.5, 1]),
        "days": np.array(["2026-01-02", "NaT"], dtype="datetime64[D]"),
        "times": np.array(["2026-01-02T03:04:05"], dtype="datetime64[ns]"),
        "spans": np.array([1_000_000], dtype="timedelta64[ns]"),
        "empty": np.array([]),
        "zero": np.array(3),
        "record": np.array([(1, 2.5)], dtype=[("a", int), ("b", float)]),
        "masked": np.ma.array([1, 2], mask=[False, True]),
        "objects": np.array([Decimal("1.5"), None], dtype=object),
    }

    assert json.loads(json.dumps(dump_value(shown))) == {
        "int": 3,
        "float": 0.5,
        "bool": True,
        "text": "a",
        "day": "2026-01-02",
        "time": "2026-01-02T03:04:05.123456",
        "none": None,
        "span": "PT1H30M",
        "fine": "PT0.000001S",
        "matrix": [[1, 2], [3, 4]],
        "floats": [0.5, 1.0],
        "days": ["2026-01-02", None],
        "times": ["2026-01-02T03:04:05"],
        "spans": ["PT0.001S"],
        "empty": [],
        "zero": 3,
        "record": [[1, 2.5]],
        "masked": [1, None],
        "objects": ["1.5", None],
    }
    assert str(dump_value(np.array([np.nan]))) == "[nan]"
    for odd in (np.longdouble(1), np.complex128(1j)):
        with pytest.raises(TypeError, match="has no JSON form"):
            dump_value(odd)
    assert output_of(np.ndarray) == {"type": "array"}
    assert output_of(np.typing.NDArray[np.float64]) == {"type": "array"}
    assert output_of(np.float64) == {"type": "number"}
    assert output_of(np.int32) == {"type": "integer"}
    assert output_of(np.bool_) == {"type": "boolean"}
    assert "numpy.ndarray has no JSON Schema; write list" in refusal_of({"a": np.ndarray})
    assert "numpy.float64 has no JSON Schema; write float" in refusal_of({"a": np.float64})


def test_pandas_itself():
    """Frames, series and indexes are dumped; missing values are null."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "x": [0.5, None],
            "when": [pd.Timestamp("2026-01-02"), pd.NaT],
            "text": ["a", None],
            "kind": pd.Categorical(["a", "b"]),
            "whole": pd.array([1, None], dtype="Int64"),
            0: [True, False],
        },
        index=[5, 6],
    )

    rows = [
        {"n": 1, "x": 0.5, "when": "2026-01-02T00:00:00", "text": "a", "kind": "a", "whole": 1,
         "0": True},
        {"n": 2, "x": None, "when": None, "text": None, "kind": "b", "whole": None, "0": False},
    ]  # fmt: skip
    assert json.loads(json.dumps(dump_value(frame))) == rows
    assert dump_value({"s": frame["x"], "i": frame.index}) == {"s": [0.5, None], "i": [5, 6]}
    assert dump_value([pd.NA, pd.NaT, pd.Timedelta("90min")]) == [None, None, "PT1H30M"]
    assert dump_value(pd.DataFrame()) == []
    for wrong in (pd.DataFrame([[1, 2]], columns=["a", "a"]), frame.set_index("n", append=True).T):
        with pytest.raises((TypeError, ValueError), match=r"column|keys of a JSON object"):
            dump_value(wrong)
    with pytest.raises(TypeError, match="Period has no JSON form"):
        dump_value(pd.Period("2026"))
    assert output_of(pd.DataFrame) == {"type": "array", "items": {"type": "object"}}
    assert output_of(pd.Series) == {"type": "array"}
    assert "pandas.DataFrame has no JSON Schema; write list" in refusal_of({"a": pd.DataFrame})


def test_polars_itself():
    """Frames and series are dumped; null is null, and NaN stays."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"n": [1, None], "day": [dt.date(2026, 1, 2), None], "l": [[1], []]})

    assert dump_value(frame) == [
        {"n": 1, "day": "2026-01-02", "l": [1]},
        {"n": None, "day": None, "l": []},
    ]
    assert dump_value(frame["n"]) == [1, None]
    assert str(dump_value(pl.Series([float("nan")]))) == "[nan]"
    with pytest.raises(TypeError, match=r"LazyFrame has no JSON form; return its frame"):
        dump_value(frame.lazy())
    assert output_of(pl.DataFrame) == {"type": "array", "items": {"type": "object"}}
    assert "polars.DataFrame has no JSON Schema; write list" in refusal_of({"a": pl.DataFrame})

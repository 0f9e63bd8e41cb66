"""Utilities of all layers."""

from pathlib import Path

import pytest

from noizu_mcp._util import UNSET, final, json_text, publish, relative_path, snake_case


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("GetWeather", "get_weather"),
        ("SAPExample", "sap_example"),
        ("FooBar10", "foo_bar10"),
        ("Crash", "crash"),
        ("HTML5Parser", "html5_parser"),
        ("already_snake", "already_snake"),
        ("X", "x"),
    ],
)
def test_snake_case(name: str, expected: str) -> None:
    """Words of a class name are found, including acronyms."""
    assert snake_case(name) == expected


def test_unset_is_false_and_says_its_name() -> None:
    """The marker is false, and its `repr` is its name."""
    assert not UNSET
    assert repr(UNSET) == "UNSET"


def test_json_text_is_compact_and_strict() -> None:
    """The text has no spaces, no escapes, and no NaN."""
    assert json_text({"é": [1, None], "a": "b"}) == '{"é":[1,null],"a":"b"}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text(float("nan"))


def test_final() -> None:
    """A final class cannot be subclassed."""

    @final
    class Done:
        pass

    with pytest.raises(TypeError, match="More cannot subclass Done, which is final"):

        class More(Done):
            pass


def test_publish_moves_only_private_names() -> None:
    """A public name gets its public module; foreign names and values are unchanged."""

    def ours() -> None: ...

    class Ours:
        __slots__ = ()

    ours.__module__ = Ours.__module__ = "folder._file"
    names = {"ours": ours, "path": Path, "text": "x", "value": Ours()}
    publish({"__name__": "folder", "__all__": list(names), **names})
    assert (ours.__module__, Ours.__module__) == ("folder", "folder._file")
    assert Path.__module__ != "folder"


def test_relative_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file below the current directory has a path relative to it."""
    monkeypatch.chdir(tmp_path)
    assert relative_path(str(Path.cwd() / "a" / "b.py")) == str(Path("a") / "b.py")
    assert relative_path("<stdin>") == "<stdin>"
    assert relative_path(str(tmp_path.parent)) == str(tmp_path.parent)

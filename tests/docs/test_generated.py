"""The generated pages of the reference are up to date, and list every public name."""

import importlib
import inspect
import re
import runpy
from pathlib import Path

import pytest

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
SCRIPT = runpy.run_path(str(REFERENCE / "generate.py"))
PAGES = SCRIPT["PAGES"]
TEXTS: dict[Path, str] = SCRIPT["texts"]()


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_pages_are_up_to_date(path: Path) -> None:
    """Each page on disk is the page that `docs/reference/generate.py` writes."""
    assert path.read_text(encoding="utf-8") == TEXTS[path], "run docs/reference/generate.py"


def test_no_page_is_left_over() -> None:
    """The folder of generated pages has no other file."""
    written = {path for path in TEXTS if path.parent.name == "api"}

    assert {*(REFERENCE / "api").iterdir()} == written


@pytest.mark.parametrize("module", sorted({page.module for page in PAGES} - {""}))
def test_every_public_name_has_an_entry(module: str) -> None:
    """Each public name of a module is in one group, and no other name is."""
    groups = [page.groups.values() for page in PAGES if page.module == module]
    names = [name for group in groups for words in group for name in words.split()]

    home = importlib.import_module(module)
    # A folder is listed among the folders.
    named = [each for each in home.__all__ if not hasattr(getattr(home, each), "__path__")]
    assert sorted(named) == sorted(names)


CLASSES = {
    thing: page.file
    for page in PAGES
    for group, names in page.groups.items()
    for name in names.split()
    if inspect.isclass(thing := SCRIPT["listed"](name, page.module or group))
}


def section(cls: type) -> str:
    """Return the section of a class, or nothing for a class without one."""
    page = TEXTS[REFERENCE / "api" / f"{CLASSES[cls]}.md"] if cls in CLASSES else ""
    after = page.partition(f"\n### class {cls.__name__}\n")[2]
    return re.split("^### ", after, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_public_member_is_shown(cls: type) -> None:
    """The section of a class, or of its base class, names every method and attribute."""
    owners = [owner for owner in cls.__mro__ if owner.__module__.startswith("noizu_mcp")]
    words = set(re.findall(r"\w+", " ".join(map(section, owners))))
    members = {name for owner in owners for name in vars(owner) if not name.startswith("_")}

    assert members - words - SCRIPT["INTERNAL"].get(cls.__name__, set()) == set()


def test_signatures_are_short() -> None:
    """Types have no module names, and defaults no addresses."""
    for path, text in TEXTS.items():
        for block in re.findall(r"^```pyi\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            for word in ("collections.abc.", "typing.", "noizu_mcp.", "0x", "NOTHING", "~"):
                code = re.sub("^ *#.*", "", block, flags=re.MULTILINE)
                assert word not in code, path.name


def test_every_entry_says_something() -> None:
    """Each name in the index has a summary."""
    rows = [line for line in TEXTS[REFERENCE / "names.md"].splitlines() if line.startswith("| [")]

    assert not [row for row in rows if row.endswith("|  |")]

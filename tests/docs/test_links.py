"""Links between the pages are valid, and every page can be reached."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def text_of(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def links_of(page: Path) -> list[str]:
    return [link for link in LINK.findall(text_of(page)) if "://" not in link]


def anchors_of(page: Path) -> set[str]:
    """List the anchors of the headings, in the form that GitHub uses."""
    titles = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Each link is to a file of the project, and to an existing heading."""
    for link in links_of(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


def test_every_page_can_be_reached() -> None:
    """Links from the README lead to each page and each example, directly or by other pages."""
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        if page.suffix == ".md":
            waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links_of(page)]

    assert {*PAGES, *(ROOT / "docs" / "examples").glob("*.py")} <= reached


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_plain(page: Path) -> None:
    """A page has one title, and no path of a developer's machine."""
    text = text_of(page)

    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    assert not re.search(r"(?<![\w.])/(root|tmp|work)/", page.read_text(encoding="utf-8"))

"""The pictures of the pages are drawn from the code."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "discussion"
SCRIPT = runpy.run_path(str(FOLDER / "draw.py"))


@pytest.mark.slow
@pytest.mark.parametrize("page", SCRIPT["PICTURES"])
def test_a_picture_is_up_to_date(page):
    """`python docs/discussion/draw.py` would not change the page."""
    assert (FOLDER / page).read_text(encoding="utf-8") == SCRIPT["draw"](page)

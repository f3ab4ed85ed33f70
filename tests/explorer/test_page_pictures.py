"""The pictures of the page in the documents."""

import re
from pathlib import Path

from mini_bert.explorer.assets import digest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pictures_show_the_page_as_it_is():
    made = (DOCS / "images" / "explorer.sha256").read_text("ascii").strip()
    assert made == digest(), "the page has changed since its pictures were made: make screenshots"


def test_every_picture_is_shown():
    shown = re.findall(r"\(images/(explorer-[a-z]+\.png)\)", (DOCS / "explorer.md").read_text("utf-8"))
    assert sorted(shown) == sorted(path.name for path in (DOCS / "images").glob("explorer-*.png"))

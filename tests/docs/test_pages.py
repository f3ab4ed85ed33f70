"""The links of the pages lead somewhere, their commands exist, the README stays short."""

import re
from pathlib import Path

import pytest
from run_page import blocks_of

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_the_pages_on_mathematics_have_examples_with_their_output():
    pages = [page for page in ROOT.glob("docs/math/*.md") if page.name != "README.md"]
    assert [page.name for page in pages if not any(block.output for block in blocks_of(page))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [target for target in targets
               if target and not re.match(r"https?:|mailto:", target) and not (page.parent / target).exists()]
    assert missing == []


def test_the_readme_is_short_and_opens_with_the_two_commands():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert readme.index("make quickstart") < readme.index("make test") < 2500
    assert readme.count("\n") < 150
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"`?make ([a-z-]+)`?", readme):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_named_command_exists():
    from typer.main import get_command

    from mini_bert.cli.app import app

    known = set(get_command(app).commands)
    named = {verb for page in PAGES for verb in re.findall(r"mini-bert ([a-z][a-z-]+)", page.read_text("utf-8"))}
    assert named <= known

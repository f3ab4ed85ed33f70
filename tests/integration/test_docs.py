"""The documents say what is so: their examples run, their links lead somewhere, their commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
EXAMPLE = re.compile(r"```python\n(.*?)```\s*```text\n(.*?)```", re.DOTALL)
EXAMPLES = [pytest.param(program, output, id=f"{page.relative_to(ROOT)} {number}")
            for page in PAGES for number, (program, output) in enumerate(EXAMPLE.findall(page.read_text("utf-8")))]


@pytest.mark.parametrize(("program", "output"), EXAMPLES)
def test_an_example_prints_what_the_page_says(program: str, output: str):
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == output.strip()


def test_the_pages_on_mathematics_have_examples():
    with_examples = {page for page in ROOT.glob("docs/math/*.md") if EXAMPLE.search(page.read_text("utf-8"))}
    assert {page.name for page in ROOT.glob("docs/math/*.md")} - {page.name for page in with_examples} <= {"README.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [target for target in targets
               if target and not re.match(r"https?:|mailto:", target) and not (page.parent / target).exists()]
    assert missing == []


def test_the_readme_opens_with_the_two_commands():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert readme.index("make quickstart") < readme.index("make test") < 2500
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"`?make ([a-z-]+)`?", readme):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_named_command_exists():
    from typer.main import get_command

    from mini_bert.cli.app import app

    known = set(get_command(app).commands)
    named = {verb for page in PAGES for verb in re.findall(r"mini-bert ([a-z][a-z-]+)", page.read_text("utf-8"))}
    assert named <= known

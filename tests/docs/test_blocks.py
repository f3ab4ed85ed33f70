"""The pages say what is so: every `python` and `bash` block runs, and prints what the page says it prints."""

import subprocess
import sys
from pathlib import Path

import pytest
from run_page import blocks_of

ROOT = Path(__file__).parents[2]
PAGES = [page for page in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/*.md")])
         if blocks_of(page)]
IN_EMPTY_FOLDERS = {"README.md", *(f"docs/tutorials/{page.name}" for page in ROOT.glob("docs/tutorials/*.md"))}
# blocks that are not run: at the most this many of a page, each with its reason above it
NOT_RUN = {"README.md": 2, "docs/using.md": 3, "docs/guide/3-the-full-model.md": 1, "docs/guide/5-evaluation.md": 1,
           "docs/explorer.md": 1, "docs/python.md": 1, "docs/several-machines.md": 5, "docs/serving.md": 4,
           "docs/tutorials/spreadsheet.md": 2,
           "docs/tutorials/hugging-face-without-pytorch.md": 2}


@pytest.mark.parametrize("page", [page for page in PAGES if str(page.relative_to(ROOT)) not in IN_EMPTY_FOLDERS],
                         ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run_and_print_what_it_says(page: Path, scratch: Path, environment: dict[str, str]):
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("run_page.py")), str(page)], cwd=scratch,
                          env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr


def test_few_blocks_are_not_run_and_each_gives_its_reason():
    left_out = {str(page.relative_to(ROOT)): sum(block.reason is not None for block in blocks_of(page))
                for page in PAGES}
    assert {page: count for page, count in left_out.items() if count} == NOT_RUN

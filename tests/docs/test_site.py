"""The pages work on GitHub and on the site: links to code name what exists, formulas and files are shown."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("docs/**/*.md"))
CODE_LINK = re.compile(r"\]\(([^)#\s]+\.py)#([^)\s]+)\)")


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_into_code_names_a_function_class_or_method_of_the_file(page: Path, hooks: ModuleType):
    for path, symbol in CODE_LINK.findall(page.read_text("utf-8")):
        assert hooks.symbol_line(page.parent / path, symbol) is not None, f"{path} has no {symbol}"


def test_every_page_is_in_the_navigation_and_every_entry_has_a_page():
    def entries(nav: object) -> set[str]:
        if isinstance(nav, str):
            return {nav}
        return {page for part in (nav.values() if isinstance(nav, dict) else nav) for page in entries(part)}

    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    listed = entries(yaml.safe_load(settings[settings.index("\nnav:"):])["nav"])
    notebooks = {page for page in listed if page.startswith("notebooks/")}
    assert {str(page.relative_to(ROOT / "docs")) for page in PAGES} == listed - notebooks
    assert {Path(page).stem for page in notebooks} == {path.stem for path in ROOT.glob("notebooks/*.ipynb")}


def test_links_to_files_lead_to_the_pages_that_show_them(hooks: ModuleType):
    text = ("[a](../../mini_bert/core/model.py#MiniBERT.forward) [b](linear.md#cost) [c](../../README.md) [d](#here) "
            "[e](https://example.org/x.py) `[f](../../mini_bert/core/model.py)`")
    made = hooks.with_site_links(text, "docs/math/attention.md")
    line = hooks.symbol_line(ROOT / "mini_bert" / "core" / "model.py", "MiniBERT.forward")
    assert made == (f"[a](../repository/mini_bert/core/model.py.md#L{line}) [b](linear.md#cost) [c](../index.md) "
                    "[d](#here) [e](https://example.org/x.py) `[f](../../mini_bert/core/model.py)`")


def test_a_dead_link_is_left_for_the_build_to_refuse(hooks: ModuleType):
    dead = "[a](../../mini_bert/gone.py) [b](../../mini_bert/core/model.py#gone)"
    assert hooks.with_site_links(dead, "docs/math/attention.md") == dead


def test_formulas_become_mathml(hooks: ModuleType):
    pytest.importorskip("latex2mathml", reason="comes with the extra docs; `make docs` converts every formula")
    made = hooks.with_mathml(
        r'<p><span class="arithmatex">\(x \lt y\)</span></p><div class="arithmatex">\[dx = J^T dy\]</div>', "")
    assert made.count("<math") == 2
    assert 'display="block"' in made
    assert "arithmatex" not in made


def test_lines_of_code_have_the_anchors_that_github_gives_them(hooks: ModuleType):
    page = hooks.code_page("a.py", "x = 1\n\nprint('a < b')\n")
    assert re.findall(r'id="(L\d+)"', page) == ["L1", "L2", "L3"]
    assert "a &lt; b" in page


def test_a_notebook_is_shown_with_what_it_printed(hooks: ModuleType):
    cells = [{"cell_type": "markdown", "source": ["# Title"]},
             {"cell_type": "code", "source": ["print(1)"], "outputs": [{"output_type": "stream", "text": ["1\n"]},
                                                                      {"data": {"image/png": "aGk=\n"}}]}]
    page = hooks.notebook_page({"cells": cells})
    assert "# Title\n\n```python\nprint(1)\n```\n\n```text\n1\n```" in page
    assert "data:image/png;base64,aGk=" in page


def test_the_design_page_has_the_table_of_imports_that_the_tests_hold():
    spec = importlib.util.spec_from_file_location("held", ROOT / "tests" / "integration" / "test_imports.py")
    assert spec is not None
    assert spec.loader is not None
    held = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(held)
    page = (ROOT / "docs" / "design.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .+? \| (.+?) \| (.+?) \|$", page, re.MULTILINE)
    table = {part: (set(re.findall(r"`(\w+)`", parts)), set(re.findall(r"\w+", libraries)) - {"none"})
             for part, parts, libraries in rows}
    assert table == {part: (set(parts), held.THIRD_PARTY.get(part, set())) for part, parts in held.ALLOWED.items()}


@pytest.mark.parametrize("name", ["count_parameters.py", "mini_family.py"])
def test_the_counts_of_the_architectures_are_what_the_scripts_print(name: str, environment: dict[str, str]):
    script = ROOT / "docs" / "comparisons" / name
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() in (script.parent / "architectures.md").read_text("utf-8")

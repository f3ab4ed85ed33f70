"""The committed notebooks: executed, complete, independent of the machine, and importing only the library.

`make notebooks` executes them; these tests only read the files.
"""

import ast
import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
NAMES = ["01-build-bert", "02-understanding-attention", "03-gradient-flow-analysis", "04-training-dynamics",
         "05-representation-analysis", "06-advanced-techniques"]
ALLOWED = {"mini_bert", "numpy", "matplotlib", *sys.stdlib_module_names}
NETWORK = {"socket", "urllib", "http", "ssl", "ftplib", "smtplib", "subprocess"}
MACHINE = re.compile(r"(?<![\w.])/(root|home|tmp|work|usr|var|opt|mnt|Users)/|[A-Z]:\\\\|site-packages|ipykernel")
MOMENT = re.compile(r"\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b|\d seconds?\b|\d m?s\b")
EACH = pytest.mark.parametrize("name", NAMES)


def read(name: str) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))
    return notebook


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def code_cells(name: str) -> list[dict[str, Any]]:
    return [cell for cell in read(name)["cells"] if cell["cell_type"] == "code"]


def prose(name: str) -> str:
    return "\n".join(source(cell) for cell in read(name)["cells"] if cell["cell_type"] == "markdown")


def shown(cell: dict[str, Any]) -> str:
    """The text output of a cell."""
    return "".join("".join(output.get("text", output.get("data", {}).get("text/plain", "")))
                   for output in cell["outputs"])


def shows_something(cell: dict[str, Any]) -> bool:
    """Does the cell print, or end with a value?"""
    body = ast.parse(source(cell)).body
    called = [node.func for statement in body if not isinstance(statement, ast.FunctionDef | ast.ClassDef)
              for node in ast.walk(statement) if isinstance(node, ast.Call)]
    prints = any(isinstance(function, ast.Name) and function.id == "print" for function in called)
    return prints or isinstance(body[-1], ast.Expr)


def test_the_readme_lists_all_notebooks():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NAMES
    page = (FOLDER / "README.md").read_text("utf-8")
    assert [name for name in NAMES if f"({name}.ipynb)" not in page] == []


@EACH
def test_a_notebook_has_the_current_format(name: str):
    notebook = read(name)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("markdown", "code")
        assert set(cell["metadata"]) <= {"tags"}


@EACH
def test_a_notebook_was_executed_in_order_without_errors_or_warnings(name: str):
    cells = code_cells(name)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"] == []


@EACH
def test_every_cell_with_output_has_it_saved(name: str):
    assert [source(cell) for cell in code_cells(name) if shows_something(cell) and not cell["outputs"]] == []


@EACH
def test_outputs_do_not_depend_on_the_machine_or_the_time(name: str):
    for cell in code_cells(name):
        assert MACHINE.search(shown(cell)) is None, shown(cell)
        assert MOMENT.search(shown(cell)) is None, shown(cell)
        assert MACHINE.search(source(cell)) is None, source(cell)


@EACH
def test_a_notebook_imports_only_the_library_numpy_and_matplotlib(name: str):
    nodes = [node for cell in code_cells(name) for node in ast.walk(ast.parse(source(cell)))]
    imported = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module).split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    assert imported <= ALLOWED - NETWORK
    assert "mini_bert" in imported


@EACH
def test_a_notebook_has_assertions_questions_and_figures(name: str):
    cells = code_cells(name)
    asserts = sum(isinstance(node, ast.Assert) for cell in cells for node in ast.walk(ast.parse(source(cell))))
    assert asserts >= 10
    assert prose(name).count("say what you expect") >= 3
    pictures = [output["data"]["image/png"] for cell in cells for output in cell["outputs"]
                if "image/png" in output.get("data", {})]
    assert len(pictures) >= 2
    assert all(base64.b64decode("".join(picture)).startswith(b"\x89PNG") for picture in pictures)
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 1_000_000


def test_the_first_notebook_builds_its_operations_without_the_library():
    cells = code_cells(NAMES[0])
    own = next(number for number, cell in enumerate(cells) if "mini_bert" in source(cell))
    before = "\n".join(source(cell) for cell in cells[:own])
    for operation in ("linear", "relu", "layernorm", "softmax", "attention", "embedding", "cross_entropy", "layer",
                      "bert"):
        assert f"def {operation}_forward(" in before
        assert f"def {operation}_backward(" in before
    after = "\n".join(source(cell) for cell in cells[own:])
    assert "mini_bert.core" not in after


@pytest.mark.parametrize("page", [*NAMES, "README"])
def test_links_are_valid(page: str):
    text = (FOLDER / "README.md").read_text("utf-8") if page == "README" else prose(page)
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    assert targets
    assert [target for target in targets if not (FOLDER / target).exists()] == []


def test_only_known_tags_are_used():
    tags = {tag for name in NAMES for cell in code_cells(name) for tag in cell["metadata"].get("tags", [])}
    assert tags <= {"varies"}

"""Which part of the package may import which, and what importing the package loads."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "mini_bert"

FOUNDATION = {"errors", "files", "interrupts", "late", "palette", "pretrained", "processes", "randomness", "readers",
              "settings", "version", "workers", "parallel"}
# part of the package: the parts that it may import
ALLOWED = {
    "core": set(),
    "text": {"core"},                                    # its registry alone: see below
    "checks": {"core", "configs", "objectives", "training", "evaluation", "analysis"},
    "configs": {"core"},
    "objectives": {"core", "text", "inference", "factory"},
    "training": {"core", "text", "configs", "objectives", "factory"},
    "evaluation": {"core", "text", "configs", "objectives", "training", "inference"},
    "analysis": {"core", "text", "configs", "objectives", "training", "inference", "evaluation", "plots"},
    "exercises": {"core", "text", "configs", "checks", "objectives", "training", "analysis"},
    "parallel": set(),
    "plots": set(),
    "practice": {"core", "text", "training"},
    "templates": set(),
    "inference": {"core", "text"},
    "lab": {"core", "text", "configs", "objectives", "training", "evaluation", "inference", "bench", "factory",
            "plugins"},
    "report": {"core", "text", "training", "inference", "evaluation", "analysis", "plots", "lab"},
    "fit": {"core", "text", "training", "evaluation", "inference", "report", "factory"},
    "api": {"core", "text", "training", "evaluation", "analysis", "inference", "factory"},
    "bench": {"core", "text", "configs", "objectives", "training", "plugins"},
    "interop": {"core", "text", "training", "evaluation", "analysis"},
    "explorer": {"core", "text", "configs", "objectives", "training", "inference", "evaluation", "analysis", "factory",
                 "serve"},
    "serve": {"core", "text", "inference", "evaluation", "analysis", "api"},
}
THIRD_PARTY = {"core": {"numpy", "safetensors"}, "text": {"numpy"}, "configs": {"yaml"}, "interop": {"numpy"},
               "checks": {"numpy"}, "objectives": {"numpy"},
               "training": {"numpy", "safetensors", "threadpoolctl", "yaml"}, "evaluation": {"numpy", "safetensors"},
               "analysis": {"numpy"}, "exercises": {"numpy"},
               "parallel": {"mpi4py", "numpy", "threadpoolctl"},
               "plots": {"numpy", "matplotlib"}, "report": {"numpy"}, "bench": {"numpy"}, "lab": {"numpy"},
               "explorer": {"latex2mathml", "markdown", "numpy", "starlette", "uvicorn"},
               "serve": {"numpy", "starlette", "uvicorn"},
               "inference": {"numpy"}, "api": {"numpy"}, "cli": {"numpy", "typer", "rich"}}
NEVER = {"torch", "transformers", "tokenizers", "tensorflow", "jax", "scipy", "sklearn", "pickle", "numba"}


def imports(file: Path) -> set[str]:
    """The absolute names of all modules that a file imports, also inside functions."""
    package = ["mini_bert", *file.relative_to(PACKAGE).parent.parts]
    names = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *([node.module] if node.module else [])]
            names.add(".".join(module))
            names |= {".".join([*module, alias.name]) for alias in node.names if module == ["mini_bert"]}
    return names


FILES = {file.relative_to(PACKAGE): file for file in sorted(PACKAGE.rglob("*.py"))}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_only_point_down(path: Path):
    part = path.parts[0] if len(path.parts) > 1 else None
    names = imports(FILES[path])
    assert not {name.split(".")[0] for name in names} & NEVER
    if part is None:
        return                                          # the facade may import anything
    inside = {name.split(".")[1] for name in names if name.startswith("mini_bert.")}
    if part in ALLOWED:
        assert inside <= ALLOWED[part] | FOUNDATION | {part}
    outside = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"mini_bert"}
    assert outside <= THIRD_PARTY.get(part, set())


@pytest.mark.parametrize("path", [path for path in FILES if path.parts[0] == "text"], ids=str)
def test_text_knows_nothing_of_models_but_the_registry(path: Path):
    assert {name for name in imports(FILES[path]) if name.startswith("mini_bert.core")} <= {"mini_bert.core.registry"}


def test_every_part_is_in_the_table():
    parts = {path.parts[0] for path in FILES if len(path.parts) > 1}
    assert parts <= {*ALLOWED, *FOUNDATION, "cli"}


def test_importing_the_package_loads_nothing_else():
    program = """
import sys
before = set(sys.modules)
import mini_bert
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
print(*sorted(loaded - set(sys.stdlib_module_names)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["mini_bert"]


def test_no_file_is_too_long_to_read():
    long = {str(path): lines for path, file in FILES.items()
            if (lines := len(file.read_text("utf-8").splitlines())) > 400}
    assert long == {}


def test_loading_a_model_imports_nothing_of_training():
    program = """
import sys
import mini_bert
mini_bert.load("mini")
print(*sorted(name for name in sys.modules if name.startswith(("mini_bert.training", "mini_bert.objectives"))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_no_folder_has_more_files_than_a_reader_can_hold():
    folders = [path.parent for path in FILES if path.name != "__init__.py"]
    assert {str(folder): n for folder in set(folders) if (n := folders.count(folder)) > 16} == {}


def test_every_folder_says_what_belongs_in_it():
    empty = [str(path) for path, file in FILES.items()
             if path.name == "__init__.py" and not ast.get_docstring(ast.parse(file.read_text("utf-8")))]
    assert empty == []

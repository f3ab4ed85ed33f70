"""Execute the notebooks: check that they run and that their saved outputs are up to date, or update the outputs.

    python notebooks/execute.py                 all; fails if one does not run, or its saved outputs are stale
    python notebooks/execute.py 01 04           those whose names begin with 01 or 04
    python notebooks/execute.py --write         saves the new outputs in the files

A notebook runs in an empty temporary directory, with this Python, and may take two minutes of processor time (not wall
time, since the machine may be busy). Outputs are up to date if the text and the number of figures are the same, and
there is no error and no warning. The text of a cell with the tag `varies` is not compared: it depends on the
documentation installed with Python (`pydocs`) or on the rounding of the machine. Needs the extra `notebooks`.
"""

import argparse
import os
import re
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

HERE = Path(__file__).parent
VARIES = "varies"
_LONGEST = 600                # seconds per cell, on a busy machine
_MOST_WORK = 120              # seconds of processor time per notebook, over all threads
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def execute(notebook: Any) -> None:
    """Run all cells, and leave in their outputs only what a reader sees."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")        # training starts its own threads
    with tempfile.TemporaryDirectory() as scratch:
        # client and kernel talk through files in the scratch directory, so no port is opened
        files = Config({"KernelManager": {"transport": "ipc", "ip": str(Path(scratch, ".kernel"))}})
        client = NotebookClient(notebook, config=files, kernel_name="python3", timeout=_LONGEST, record_timing=False,
                                resources={"metadata": {"path": scratch}})
        client.execute()
    notebook.metadata = nbformat.from_dict({
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"}})
    for cell in code_cells(notebook):
        cell.metadata.pop("execution", None)
        cell.outputs = [_tidy(output) for output in joined(cell.outputs)]


def code_cells(notebook: Any) -> Iterator[Any]:
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def joined(outputs: list[Any]) -> list[Any]:
    """Outputs with the pieces of one stream joined: what was printed at once may arrive in parts."""
    made: list[Any] = []
    for output in outputs:
        before = made[-1] if made else None
        if before is not None and output.output_type == before.output_type == "stream" and output.name == before.name:
            before.text += output.text
        else:
            made.append(output)
    return made


def _tidy(output: Any) -> Any:
    if output.output_type in ("display_data", "execute_result"):
        output.metadata = nbformat.from_dict({})
        if "image/png" in output.data:
            output.data = nbformat.from_dict({"image/png": output.data["image/png"]})
    return output


def shown(cell: Any) -> tuple[list[str], int]:
    """The texts that a cell shows, and the number of its figures."""
    texts, figures = [], 0
    for output in cell.outputs:
        if output.output_type == "stream":
            texts.append("".join(output.text))
        elif "image/png" in output.get("data", {}):
            figures += 1
        else:
            texts.append("".join(output.get("data", {}).get("text/plain", "")))
    return texts, figures


def faults(notebook: Any, before: Any) -> Iterator[str]:
    """One sentence for each difference between an executed notebook and the committed one."""
    for number, (cell, old) in enumerate(zip(code_cells(notebook), code_cells(before), strict=True), 1):
        if any(output.get("name") == "stderr" for output in cell.outputs):
            yield f"code cell {number} warns: {''.join(shown(cell)[0]).strip()[:200]}"
        (texts, figures), (old_texts, old_figures) = shown(cell), shown(old)
        if figures != old_figures:
            yield f"code cell {number} shows {figures} figures, but the file has {old_figures}."
        if texts != old_texts and VARIES not in cell.metadata.get("tags", []):
            yield f"code cell {number} prints {texts}, but the file has {old_texts}."


def processor_time() -> float:
    """Seconds used by all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(path: Path, write: bool) -> list[str]:
    """Execute one notebook, and return what is wrong with it."""
    before, notebook, begin = nbformat.read(path, as_version=4), nbformat.read(path, as_version=4), processor_time()
    try:
        execute(notebook)
    except CellExecutionError as error:
        return [_COLOUR.sub("", str(error))[-1500:]]
    took = processor_time() - begin
    too_long = [f"it took {took:.0f} s of processor time; the limit is {_MOST_WORK} s."] if took > _MOST_WORK else []
    if not write:
        return [*faults(notebook, before), *too_long]
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(nbformat.writes(notebook) + "\n", "utf-8")
    partial.replace(path)
    return [*(fault for fault in faults(notebook, notebook) if "warns" in fault), *too_long]


def main() -> int:
    parser = argparse.ArgumentParser(description="Execute the notebooks.")
    parser.add_argument("names", nargs="*", help="how the names begin; all notebooks if none is given")
    parser.add_argument("--write", action="store_true", help="save the new outputs in the files")
    options = parser.parse_args()
    chosen = [path for path in sorted(HERE.glob("*.ipynb"))
              if not options.names or path.name.startswith(tuple(options.names))]
    if not chosen:
        print(f"There is no notebook {' or '.join(options.names)} in {HERE.name}.", file=sys.stderr)
        return 2
    failed = 0
    for path in chosen:
        begin, worked = perf_counter(), processor_time()
        found = run(path, options.write)
        failed += bool(found)
        print(f"{path.name}: {'; '.join(found) if found else 'up to date'} ({perf_counter() - begin:.0f} s, "
              f"{processor_time() - worked:.0f} s of processor time)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

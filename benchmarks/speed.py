"""Everything that is measured about speed and memory beside other libraries, as one table. Run by `make bench`.

    python benchmarks/speed.py [--rows step inference ...] [--steps 20] [--rounds 5] [--page docs/results/speed.md]

In each row the contestants take turns in one run, each in a process of its own, and the ratio is that of the minima.
Peers are PyTorch (eager, and compiled where that does not take minutes), transformers, onnxruntime and tokenizers. A
row has a goal, and a limit: a run that misses a limit fails. With --page the table replaces the one in that page.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from mini_bert.bench.contest import BenchTask, Timing, compete
from mini_bert.files import write_files

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- the table of make bench -->", "<!-- end of the table -->"
SENTENCE = "The children went to [MASK] every morning."
LONG = """
import sys, tracemalloc
from dataclasses import replace
import numpy as np
import mini_bert
from mini_bert.core.gradients import add_mlm_gradients
from mini_bert.core.model import MiniBERT

T = int(sys.argv[1])
model = MiniBERT(replace(mini_bert.load_preset("mini-rope"), max_seq_length=T))
ids, chosen = np.random.default_rng(0).integers(5, 8000, (1, T)), np.arange(T)[None] % 7 == 0
grads = model.params.zeros_like()
tracemalloc.start()
add_mlm_gradients(model, grads, ids, ids, chosen)
print(tracemalloc.get_traced_memory()[1] / 1e6)
"""


@dataclass(frozen=True)
class Row:
    """One line: what is measured, of us and of the best other, and what is asked of `value`."""

    work: str
    value: float
    goal: float
    limit: float
    ours: str = ""
    other: str = ""
    unit: str = "x"                       # "x": times as fast, the more the better; otherwise the less the better

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.unit in ("x", "%") else self.value <= self.limit

    @property
    def reached(self) -> bool:
        return self.value >= self.goal if self.unit in ("x", "%") else self.value <= self.goal

    def cells(self) -> list[str]:
        def shown(number: float) -> str:
            return f"{number:.2f}" if self.unit in ("x", "s") else f"{number:.0f} {self.unit}"

        seconds = " s" if self.unit == "s" else ""
        asked = "at least" if self.unit in ("x", "%") else "at most"
        verdict = "reached" if self.reached else "within the limit" if self.met else "MISSED"
        return [self.work, self.ours, self.other, shown(self.value) + seconds, f"{asked} {shown(self.goal)}{seconds}",
                f"{shown(self.limit)}{seconds}", verdict]


def milliseconds(timing: Timing) -> str:
    return f"{1e3 * timing.minimum:,.0f} ({1e3 * timing.median:,.0f})"


def against(work: str, timings: dict[str, Timing], goal: float, limit: float) -> Row:
    """Times the speed of the fastest peer."""
    peer = min((name for name in timings if name not in ("mini-bert", "floor")), key=lambda name: timings[name].minimum)
    return Row(work, timings[peer].minimum / timings["mini-bert"].minimum, goal, limit,
               milliseconds(timings["mini-bert"]), f"{milliseconds(timings[peer])} {peer}")


def steps(options: argparse.Namespace) -> Iterator[Row]:
    """Training steps, with the share of the products and the peak of memory."""
    threads = options.threads
    found = compete(["mini-bert", "floor", "torch", "torch.compile", "transformers"],
                    BenchTask("mini", 32, 64, threads=threads), options.steps)
    yield against("step, mini 32 x 64, against PyTorch", found, 1.5, 1.1)
    share = 100 * found["floor"].minimum / found["mini-bert"].minimum
    yield Row("share of the matrix products in that step", share, 82, 60, milliseconds(found["mini-bert"]),
              milliseconds(found["floor"]), "%")
    yield Row("peak memory of that step", found["mini-bert"].peak_bytes / 1e6, 150, 190, unit="MB")
    found = compete(["mini-bert", "torch"], BenchTask("mini", 8, 64, threads=threads), 2 * options.steps)
    yield against("step, mini 8 x 64, against PyTorch", found, 1.3, 1.0)
    found = compete(["mini-bert", "torch"], BenchTask("larger", 8, 128, threads=threads), options.steps)
    yield against("step, larger 8 x 128, against PyTorch", found, 1.4, 1.1)


def finetuning(options: argparse.Namespace) -> Iterator[Row]:
    """MiniLM-L6, against transformers."""
    program = [str(ROOT / "benchmarks" / "finetuning.py")]
    found = compete(["mini-bert", "torch"], BenchTask("mini", 32, 64, threads=options.threads), options.steps,
                    program=lambda name: program)
    yield against("fine-tuning step, MiniLM 32 x 64, against PyTorch", found, 1.2, 0.9)


LIMITS = {"32 x 64": 0.5, "8 x 128": 0.5, "1 x 16": 0.5, "1,500 sentences": 0.7}


def inference(options: argparse.Namespace) -> Iterator[Row]:
    """Vectors of MiniLM-L6, against onnxruntime: benchmarks/inference.py."""
    found = answer("inference.py", "--rounds", str(options.rounds), "--threads", str(options.threads))
    for task, part in found.items():
        ms, ratios = part["ms"], part["ratios"]
        rival = min((name for name in ms if name.startswith("onnx")), key=lambda name: ms[name]["wall minimum"])

        def shown(name: str, ms: Any = ms) -> str:
            return f"{ms[name]['wall minimum']:,.1f} ({ms[name]['wall median']:,.1f})"

        yield Row(f"inference, MiniLM {task}, against onnxruntime", ratios["wall minimum"], part["asked"],
                  LIMITS[task], shown("mini-bert"), f"{shown(rival)} {rival}")


def text(options: argparse.Namespace) -> Iterator[Row]:
    """Encoding running text, against tokenizers: benchmarks/text.py."""
    if not list(options.data.glob("*.txt")):
        print(f"There is no text in {options.data}: the rows of text are left out.", file=sys.stderr)
        return
    found = answer("text.py", "--rounds", "3", "--megabytes", "10", "--data", str(options.data), "--quiet")
    for where, limit in (("one thread", 2.0), ("all cores", 1.3)):
        part = found[where]
        speeds = part["megabytes_per_second"]
        yield Row(f"WordPiece, {where}, against tokenizers", part["ratio_of_best"], part["target"], limit,
                  f"{speeds['ours, cold']['best']:.1f} MB/s", f"{speeds[part['rival']]['best']:.1f} MB/s")


def long_texts(options: argparse.Namespace) -> Iterator[Row]:
    """How the memory of a step of mini-rope grows with the length."""
    peaks = {T: float(subprocess.run([sys.executable, "-c", LONG, str(T)], capture_output=True, text=True,
                                     check=True).stdout) for T in (2048, 4096, 8192)}
    yield Row("memory of a step, mini-rope, T = 8,192 by T = 4,096", peaks[8192] / peaks[4096], 2.1, 2.3,
              f"{peaks[8192]:.0f} MB", f"{peaks[4096]:.0f} MB", "times")


def starting(options: argparse.Namespace) -> Iterator[Row]:
    """Processor time until something is there."""
    command = str(Path(sys.executable).parent / "mini-bert")
    yield Row("import, processor time", processor_seconds([sys.executable, "-c", "import mini_bert; mini_bert.load"]),
              0.2, 0.4, unit="s")
    yield Row("fill-mask as a command, processor time", processor_seconds([command, "fill-mask", SENTENCE]), 0.4, 1.0,
              unit="s")


def processor_seconds(command: Sequence[str]) -> float:
    """The least of seven runs."""
    found = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def answer(program: str, *arguments: str) -> Any:
    """What a benchmark of this folder prints with --json; its own verdict is not asked for."""
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks" / program), "--json", *arguments],
                          stdout=subprocess.PIPE, text=True)
    if not done.stdout.strip():
        sys.exit(f"{program} gave no result.")
    return json.loads(done.stdout)


GROUPS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "step": steps, "finetuning": finetuning, "inference": inference, "text": text, "long": long_texts,
    "starting": starting}
HEAD = ["work", "Mini-BERT", "the fastest other", "ratio or amount", "goal", "limit", "verdict"]


def markdown(rows: Sequence[Row], options: argparse.Namespace) -> str:
    lines = [" | ".join(HEAD), " | ".join(["---"] * len(HEAD)), *(" | ".join(row.cells()) for row in rows)]
    head = f"Measured on {date.today():%d %B %Y} with {options.threads} threads; ms: the minimum (the median) of a run."
    return "\n".join([head, "", *(f"| {line} |" for line in lines)])


def put_into(page: Path, table: str) -> None:
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    if END not in rest:
        sys.exit(f"{page} has no place for the table: {BEGIN} … {END}")
    text = f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}"
    write_files(page.parent, {page.name: text.encode()})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--steps", type=int, default=20, help="training steps of each contestant")
    parser.add_argument("--rounds", type=int, default=7, help="turns of inference")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "pretrain",
                        help="text to encode, *.txt")
    parser.add_argument("--page", type=Path, help="the page whose table is replaced")
    parser.add_argument("--json", action="store_true", help="one object on standard output")
    options = parser.parse_args()
    rows = []
    for name in options.rows:
        for row in GROUPS[name](options):
            print(" | ".join(row.cells()), file=sys.stderr, flush=True)
            rows.append(row)
    table = markdown(rows, options)
    found = [asdict(row) | {"met": row.met, "reached": row.reached} for row in rows]
    print(json.dumps(found) if options.json else table)
    if options.page is not None:
        put_into(options.page, table)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

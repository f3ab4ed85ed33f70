"""What verifying costs: a model with its digest beside the same model without one, and opening a corpus of 100 MB.

    python benchmarks/opening.py [--text FILE ...] [--rounds 40] [--json]

Both models are loaded in turn, and what is measured is the processor's time, so that other programs disturb less.
Weights without a digest, as those from elsewhere, are searched for numbers that are not finite; weights whose digest is
right were finite when they were saved. `cost` compares the minima of both ways, and `digest` is the time of the digest
alone. The corpus is made of the files of --text, or of made-up text. Fails if the cost is above 5 % of loading, or if
the corpus takes more than 50 ms. Memory that other programs keep busy falsifies a few percent: run it alone.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from safetensors.numpy import save_file

from mini_bert import MiniBERT, WordPieceTokenizer, load, load_preset
from mini_bert.core.storage.digests import tensors_digest
from mini_bert.core.storage.model_files import WEIGHTS
from mini_bert.core.storage.safetensors_file import read_tensors
from mini_bert.pretrained import model_directory
from mini_bert.randomness import generator
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare

MOST_COST, MOST_SECONDS, CORPUS_BYTES = 0.05, 0.050, 100_000_000


def seconds(work: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    begin = clock()
    work()
    return clock() - begin


def cost_of_digest(preset: str, folder: Path, rounds: int) -> dict[str, float]:
    """The times to load a model of this preset with its digest and without, and to compute the digest."""
    with_digest, without = folder / preset, folder / f"{preset}-without"
    MiniBERT(load_preset(preset)).save(with_digest)
    tensors, _ = read_tensors(with_digest / WEIGHTS)
    without.mkdir()
    (without / "config.json").write_bytes((with_digest / "config.json").read_bytes())
    save_file(tensors, without / WEIGHTS)
    times: dict[Path, list[float]] = {with_digest: [], without: []}
    for number in range(rounds):
        for path in (with_digest, without) if number % 2 else (without, with_digest):
            times[path].append(seconds(lambda path=path: load(path), process_time))
    fastest = {path: min(found) for path, found in times.items()}
    return {"minimum": fastest[with_digest], "median": median(times[with_digest]),
            "minimum_without": fastest[without], "median_without": median(times[without]),
            "cost": fastest[with_digest] / fastest[without] - 1,
            "digest": min(seconds(lambda: tensors_digest(tensors), process_time) for _ in range(rounds))}


def made_up(file: Path) -> Path:
    """100 MB of words at random, in paragraphs."""
    rng, words = generator(0, "opening"), WordPieceTokenizer.load(model_directory("mini")).vocabulary.pieces[1000:]
    with file.open("w", encoding="utf-8") as out:
        while out.tell() < CORPUS_BYTES:
            out.write(" ".join(words[i] for i in rng.integers(0, len(words), 20_000)) + "\n\n")
    return file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", nargs="*", type=Path, default=[], help="files of text, about 100 MB")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        costs = {preset: cost_of_digest(preset, folder / preset, options.rounds) for preset in ("mini", "larger")}
        text = options.text or [made_up(folder / "text.txt")]
        prepare([str(file) for file in text], WordPieceTokenizer.load(model_directory("mini")), folder / "corpus.mb")
        opened = [seconds(lambda: Corpus(folder / "corpus.mb")) for _ in range(options.rounds)]
        size = sum(file.stat().st_size for file in text)
    passed = max(found["cost"] for found in costs.values()) < MOST_COST and median(opened) < MOST_SECONDS
    found = {"models": costs, "corpus_bytes": size, "corpus_first": opened[0], "corpus_median": median(opened),
             "passed": passed}
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for preset, times in costs.items():
            print(f"{preset}: loaded in {1e3 * times['minimum']:.1f} ms, without a digest in "
                  f"{1e3 * times['minimum_without']:.1f} ms: {times['cost']:+.1%} (limit {MOST_COST:.0%}); the digest "
                  f"alone takes {1e3 * times['digest']:.1f} ms")
        print(f"a corpus of {size / 1e6:.0f} MB: opened in {1e3 * opened[0]:.1f} ms, then in "
              f"{1e3 * median(opened):.1f} ms (limit {1e3 * MOST_SECONDS:.0f} ms)")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

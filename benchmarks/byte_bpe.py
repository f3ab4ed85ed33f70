"""How fast is byte-level BPE compared with `tokenizers`, for equal ids? Run by `make bench-text`.

Encoding natural text on one thread, with three vocabularies that `tokenizers` first learns from the training text. Both
open its tokenizer.json, each in its own process, and take turns. Both keep the words that they have met (warm); ours is
also timed with a new tokenizer in every round (cold), which meets every word of these few megabytes for the first time.
Texts are encoded many at a time, `ids_array` against the faster of `encode_batch_fast` and `encode_batch` with the
batch size that suits `tokenizers` best and without reading its ids out; and one at a time, `ids` against `encode`.
Fails if the ids differ, or if ours is less than twice as fast with many texts at a time, warm or cold.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from text import ONE_THREAD, ROOT, Process, Theirs, digest, open_text, serve, training_files

from mini_bert.text.byte_bpe.tokenizer import ByteBPETokenizer

TARGET = 2.0
LEARNED_FROM = 40_000         # paragraphs of each file
BATCH = 1000                  # texts at a time, of ours
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
VOCABULARIES = {"gpt2, 16384 pieces": (16_384, ["<|endoftext|>"]), "gpt2, 50257 pieces": (50_257, ["<|endoftext|>"]),
                "roberta, 50265 pieces": (50_265, ROBERTA)}
FASTEST, MANY, ONE = ("encode_batch_fast", "encode_batch"), ("cold", "warm"), ("cold_one", "warm_one")


class Lines:
    """The first megabytes of each file of natural text that no vocabulary was learned from."""

    def __init__(self, options: argparse.Namespace):
        files = sorted(options.data.glob("*.dev.txt")) or training_files(options.data)
        self._lines = [line for file in files for line in file.read_bytes()[: int(options.megabytes * 1e6)].decode(
            "utf-8", "replace").split("\n") if line]

    def size(self) -> float:
        """Megabytes of text."""
        return sum(len(line.encode("utf-8")) for line in self._lines) / 1e6


class OurBytes(Lines):
    def __init__(self, options: argparse.Namespace):
        super().__init__(options)
        self._tokenizer = ByteBPETokenizer.load(options.vocab)

    def _new(self) -> None:
        """A new tokenizer, whose caches are empty."""
        self._tokenizer = ByteBPETokenizer(self._tokenizer.spec)

    def cold(self) -> float:
        self._new()
        return self.warm()

    def cold_one(self) -> float:
        self._new()
        return self.warm_one()

    def warm(self) -> float:
        start = perf_counter()
        for first in range(0, len(self._lines), BATCH):
            self._tokenizer.ids_array(self._lines[first : first + BATCH])
        return perf_counter() - start

    def warm_one(self) -> float:
        ids = self._tokenizer.ids
        start = perf_counter()
        for line in self._lines:
            ids(line)
        return perf_counter() - start

    def digest(self) -> str:
        """Of both functions, each with a new tokenizer."""
        self._new()
        one = digest((ids, [len(ids)]) for ids in map(self._tokenizer.ids, self._lines))
        self._new()
        many = digest([self._tokenizer.ids_array(self._lines)])
        return one if one == many else "ids and ids_array differ"


class TheirBytes(Theirs):
    def __init__(self, options: argparse.Namespace):
        from tokenizers import Tokenizer

        self._lines, self._size = Lines(options)._lines, 64
        self._tokenizer = Tokenizer.from_file(str(options.vocab / "tokenizer.json"))

    def encode(self) -> float:
        start = perf_counter()
        for line in self._lines:
            self._tokenizer.encode(line, add_special_tokens=False)
        return perf_counter() - start


COMPETITORS = {"ours": OurBytes, "theirs": TheirBytes}


def learn(data: Path, size: int, special: list[str], folder: Path) -> None:
    """A vocabulary that `tokenizers` learns from the training text, in the layout of these special tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    texts = chain.from_iterable((line for line, _ in zip(open_text(file), range(LEARNED_FROM), strict=False))
                                for file in training_files(data))
    made.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, special_tokens=special, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    if special == ROBERTA:
        made.add_special_tokens([AddedToken("<mask>", lstrip=True)])
        made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, False)
    made.save(str(folder / "tokenizer.json"))


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Rounds in turn: medians, minima, and ratios of both."""
    with Process("ours", options, ONE_THREAD, __file__) as ours, Process("theirs", options, ONE_THREAD,
                                                                         __file__) as theirs:
        megabytes, equal, batch_size = ours("size"), ours("digest") == theirs("digest"), theirs("tune")
        rounds = [*((ours, name) for name in MANY + ONE), *((theirs, name) for name in (*FASTEST, "encode"))]
        seconds: dict[str, list[float]] = {name: [] for _, name in rounds}
        for _ in range(options.rounds):
            for process, name in rounds:
                seconds[name].append(process(name))
    found = {name: {"median": statistics.median(taken), "best": min(taken)} for name, taken in seconds.items()}
    fastest = min(FASTEST, key=lambda name: found[name]["median"])
    rivals = dict.fromkeys(MANY, fastest) | dict.fromkeys(ONE, "encode")
    ratios = {name: {key: found[rival][key] / found[name][key] for key in ("median", "best")}
              for name, rival in rivals.items()}
    return {"megabytes": megabytes, "ids_equal": equal, "batch_size": batch_size, "seconds": found, "rivals": rivals,
            "ratios": ratios, "target": TARGET,
            "met": equal and all(ratios[name]["median"] >= TARGET for name in MANY)}


def table(name: str, result: dict[str, Any]) -> Iterator[str]:
    """The result as a readable table."""
    labels = {"cold": "ours, many texts, cold", "warm": "ours, many texts, warm", "cold_one": "ours, one by one, cold",
              "warm_one": "ours, one by one, warm"}
    yield f"{name}: one thread, {result['megabytes']:.1f} MB, ids {'equal' if result['ids_equal'] else 'DIFFERENT'}"
    yield f"  {'':46}{'median':>9}{'best':>9}"
    for key, taken in result["seconds"].items():
        yield f"  {labels.get(key, 'tokenizers, ' + key):46}" \
              f"{result['megabytes'] / taken['median']:9.2f}{result['megabytes'] / taken['best']:9.2f}  MB/s"
    for key, ratio in result["ratios"].items():
        target = f"  target >= {result['target']:g}" if key in MANY else ""
        yield f"  {'ratio of ' + labels[key] + ' to ' + result['rivals'][key]:46}" \
              f"{ratio['median']:9.2f}{ratio['best']:9.2f}{target}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare byte-level BPE with tokenizers.")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "pretrain",
                        help="a directory with *.train.txt to learn from and *.dev.txt to encode (or *.txt for both)")
    parser.add_argument("--megabytes", type=float, default=1, help="how much of each file to encode (default: 1)")
    parser.add_argument("--only", choices=list(VOCABULARIES), help="one vocabulary instead of all")
    parser.add_argument("--rounds", type=int, default=5, help="(default: 5)")
    parser.add_argument("--json", action="store_true", help="one object on standard output")
    parser.add_argument("--vocab", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", choices=list(COMPETITORS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(COMPETITORS[options.serve](options))
        return 0
    if not options.data.is_dir() or not training_files(options.data):
        parser.error(f"there are no text files in {options.data}; name a directory that has some with --data.")
    results: dict[str, Any] = {}
    for name, (size, special) in VOCABULARIES.items():
        if options.only in (None, name):
            with TemporaryDirectory(prefix="mini-bert-bench-") as folder:
                options.vocab = Path(folder)
                learn(options.data, size, special, options.vocab)
                results[name] = compare(options)
            if not options.json:
                print("\n".join(table(name, results[name])), flush=True)
    if options.json:
        print(json.dumps(results))
    if not all(result["met"] for result in results.values()):
        print("Byte-level BPE misses its target.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

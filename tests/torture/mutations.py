"""Changes at random to every kind of file that the package reads: the outcome is a result or one sentence.

    python -m tests.torture.mutations --count 50000 --seed 0

A failure prints the kind, the file and the number of the mutation; `--only NUMBER` repeats it alone.
"""

import argparse
import json
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from .subjects import SUBJECTS, outcome

SLOWEST = 10.0                # seconds that reading one changed file may take
TOKENS = (b"null", b"[", b"{", b"]", b"}", b'"', b":", b",", b"-1", b"1e999", b"NaN", b"0", b"true", b"9" * 50, b"\0",
          b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\t", b"\n", b"\r", b"\xe2\x80\xa8", b"&a", b"*a", b"<<: ", b"!!",
          b"- ", b"1:59:59", b"[" * 3000, b"../", b"(", b")", b"\\", b"#", b"\xef\xbb\xbf", b".", b"_")
VALUES: tuple[Any, ...] = (None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 1.5, 1e308, "", "x", "..", "é\n", "1", [],
                           {}, [None], [[]], {"a": 1}, ["x"], [1], "x" * 1000)


class Failure(NamedTuple):
    number: int
    kind: str
    file: str
    what: str


def changed(content: bytes, rng: random.Random) -> bytes:
    """The content after one to three changes; never the same."""
    new = content
    while new == content:
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            new = rng.choice((_flip, _cut, _insert, _swap, _remove, _repeat, _replace_value, _replace_value,
                              _replace_number))(new, rng)
    return new


def _flip(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return content
    place, bit = rng.randrange(len(content)), 1 << rng.randrange(8)
    return content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _insert(content: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(content) + 1)
    return content[:place] + rng.choice((*TOKENS, rng.randbytes(rng.randrange(1, 9)))) + content[place:]


def _swap(content: bytes, rng: random.Random) -> bytes:
    a, b, c = sorted(rng.randrange(len(content) + 1) for _ in range(3))
    return content[:a] + content[b:c] + content[a:b] + content[c:]


def _remove(content: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(content) + 1)
    return content[:place] + content[place + rng.randrange(1, 30) :]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    place = rng.randrange(len(lines))
    return b"".join([*lines[:place], lines[place] * rng.randrange(1, 4), *lines[place:]])


def _replace_number(content: bytes, rng: random.Random) -> bytes:
    """Another number in the place of one that the text has."""
    places = [i for i, byte in enumerate(content[:100_000]) if 48 <= byte < 58]
    if not places:
        return content
    place = rng.choice(places)
    new = rng.choice((b"0", b"-1", b"9999999999", b"1.5", b"null", b"1e400", b"x"))
    return content[:place] + new + content[place + 1 :]


def _replace_value(content: bytes, rng: random.Random) -> bytes:
    """Of JSON, or of a line of it: one value of another type."""
    lines = content.split(b"\n")
    place = rng.randrange(len(lines))
    for part, rebuilt in ((content, lambda new: new),
                          (lines[place], lambda new: b"\n".join([*lines[:place], new, *lines[place + 1 :]]))):
        try:
            parsed = json.loads(part)
        except (ValueError, RecursionError):
            continue
        return rebuilt(json.dumps(_with_another(parsed, rng)).encode())
    return content


def _with_another(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.15:
            return {name: part for name, part in value.items() if name != key}
        return {**value, key: _with_another(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        place = rng.randrange(len(value))
        return [*value[:place], _with_another(value[place], rng), *value[place + 1 :]]
    return rng.choice(VALUES)


def run(count: int, seed: int = 0, only: int | None = None, outcomes: Counter[str] | None = None) -> Iterator[Failure]:
    """Make `count` mutations, evenly over all files, and yield what went wrong."""
    places = [(kind, name) for kind, subject in SUBJECTS.items() for name in subject.files]
    with TemporaryDirectory(prefix="mini-bert-mutations-") as made, warnings.catch_warnings():
        warnings.simplefilter("error")
        folders = {kind: Path(made) / str(i) for i, kind in enumerate(SUBJECTS)}
        for kind, subject in SUBJECTS.items():
            folders[kind].mkdir()
            subject.write(folders[kind])
            assert outcome(subject, folders[kind]) == "", f"{kind} cannot be read unchanged"
        for number in range(count) if only is None else (only,):
            kind, name = places[number % len(places)]
            file, rng = folders[kind] / name, random.Random(f"{seed} {number}")
            before = file.read_bytes()
            content = changed(before, rng)
            file.write_bytes(content)
            begin, sentence = time.perf_counter(), None
            try:
                sentence = outcome(SUBJECTS[kind], folders[kind])
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                last = traceback.extract_tb(error.__traceback__)[-1]
                yield Failure(number, kind, name, f"{type(error).__name__}: {str(error)[:200]} at {last.filename}, "
                                                  f"line {last.lineno}")
            if time.perf_counter() - begin > SLOWEST:
                yield Failure(number, kind, name, f"it took {time.perf_counter() - begin:.1f} seconds")
            if sentence is not None and outcomes is not None:
                outcomes["refused" if sentence else "accepted"] += 1
            file.write_bytes(before)


def main() -> None:
    parser = argparse.ArgumentParser(description="Read files that were changed at random.")
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="repeat one mutation")
    arguments = parser.parse_args()
    begin, failures, outcomes = time.perf_counter(), 0, Counter[str]()
    for failure in run(arguments.count, arguments.seed, arguments.only, outcomes):
        failures += 1
        print(f"FAILED {failure.number}: {failure.kind}, {failure.file}: {failure.what}", flush=True)
    tried = arguments.count if arguments.only is None else 1
    print(f"{tried} mutations with seed {arguments.seed}: {outcomes['refused']} refused with a sentence, "
          f"{outcomes['accepted']} read, {failures} failures, "
          f"{time.perf_counter() - begin:.0f} s.")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

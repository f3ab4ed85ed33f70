"""Search millions of vectors by an index: usearch holds the vectors of `mini-bert embed`, and finds nearly all nearest.

    mini-bert embed sentences.txt --out vectors.npy
    python examples/vector_index.py build vectors.npy vectors.usearch
    python examples/vector_index.py search vectors.usearch "A dog barks." --texts sentences.txt

`mini-bert similar --vectors` compares a query with every vector, which is exact and takes no preparation; its time
grows with the file. An index takes minutes to build and answers in about a millisecond whatever the size, but misses a
few of the nearest. usearch (pip install usearch) has wheels for Linux, macOS and Windows, and searches an index on disk
without reading all of it. The vectors are read in blocks, so building takes the memory of the index alone.
"""

import argparse
import sys
from itertools import islice
from pathlib import Path

import numpy as np
from usearch.index import Index

import mini_bert

BLOCK = 65_536                # vectors in memory at once


def build(vectors: Path, file: Path, kind: str = "f16") -> None:
    """An index of the vectors of a .npy file, whose numbers are kept as `kind`: f32, f16, or i8."""
    rows = np.load(vectors, mmap_mode="r", allow_pickle=False)
    index = Index(ndim=rows.shape[1], metric="cos", dtype=kind)
    for start in range(0, len(rows), BLOCK):
        block = np.asarray(rows[start : start + BLOCK], np.float32)
        index.add(np.arange(start, start + len(block)), block)
        print(f"{start + len(block):,} of {len(rows):,} vectors", file=sys.stderr)
    index.save(str(file))


def search(file: Path, query: str, model: str, top: int, texts: Path | None) -> None:
    """Print the nearest vectors' numbers and cosines, and their texts if the file is given."""
    index = Index.restore(str(file), view=True)       # mapped, not read
    if index is None:
        sys.exit(f"{file} is not an index of usearch.")
    found = index.search(mini_bert.pipeline(model).embed(query), top)
    numbers = [int(key) for key in found.keys]
    lines = {}
    if texts is not None:
        with texts.open(encoding="utf-8") as file_of_texts:
            lines = {i: line.rstrip("\n") for i, line in enumerate(islice(file_of_texts, max(numbers) + 1))
                     if i in numbers}
    for number, distance in zip(numbers, found.distances, strict=True):
        print(f"{1 - float(distance):6.3f}  {number + 1:>9,}  {lines.get(number, '')}".rstrip())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("build", help="Make an index of a .npy file.")
    making.add_argument("vectors", type=Path)
    making.add_argument("index", type=Path)
    making.add_argument("--kind", choices=["f32", "f16", "i8"], default="f16", help="How the numbers are kept.")
    asking = commands.add_parser("search", help="Find the texts nearest to a query.")
    asking.add_argument("index", type=Path)
    asking.add_argument("query")
    asking.add_argument("--model", default="mini", help="The model that made the vectors.")
    asking.add_argument("--top", type=int, default=5)
    asking.add_argument("--texts", type=Path, help="The file that the vectors were made from.")
    given = parser.parse_args()
    if given.command == "build":
        build(given.vectors, given.index, given.kind)
    else:
        search(given.index, given.query, given.model, given.top, given.texts)


if __name__ == "__main__":
    try:
        main()
    except (mini_bert.MiniBertError, OSError, ValueError) as error:       # one sentence instead of a traceback
        sys.exit(str(error))

"""Search a file by meaning: each line becomes a vector once, and a query finds the nearest lines.

    python examples/semantic_search.py sentences.txt "A dog barks." "Where is the train?"

The vectors are cached next to the file. The shipped model is small, and its vectors measure similarity only roughly;
with `--model DIR`, a BERT that was trained for sentence embeddings, the same script does far better.
"""

import argparse
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt

import mini_bert
from mini_bert import Pipeline

Vectors = npt.NDArray[np.float32]


def cached_vectors(file: Path, lines: list[str], model: Pipeline) -> Vectors:
    """The vectors of the lines, from the cache if it was made from the same lines and weights."""
    digest = sha256("\n".join(lines).encode() + model.model.params.flat.tobytes()).hexdigest()[:16]
    place = file.with_name(f".{file.name}.{digest}.npy")
    if place.exists():
        return np.asarray(np.load(place, allow_pickle=False), np.float32)
    vectors = model.embed(lines)
    np.save(place, vectors)
    return vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="Text, one passage per line.")
    parser.add_argument("queries", nargs="+", help="What to search for.")
    parser.add_argument("--model", default="mini", help="A shipped model, or a directory with a BERT model.")
    parser.add_argument("--top", type=int, default=3, help="Lines to show for each query.")
    options = parser.parse_args()

    lines = [line for line in options.file.read_text("utf-8").splitlines() if line.strip()]
    model = mini_bert.pipeline(options.model)
    vectors = cached_vectors(options.file, lines, model)

    # Vectors of a language model share a large common part, which says nothing about meaning. Subtracting the mean of
    # the lines, from the queries too, spreads the cosines out.
    common = vectors.mean(axis=0)
    found = _unit(vectors - common)
    asked = _unit(model.embed(options.queries) - common)
    for query, cosines in zip(options.queries, asked @ found.T, strict=True):
        print(query)
        for place in np.argsort(-cosines)[: options.top]:
            print(f"  {cosines[place]:5.2f}  {lines[place]}")


def _unit(rows: Vectors) -> Vectors:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-12), np.float32)


if __name__ == "__main__":
    try:
        main()
    except (mini_bert.MiniBertError, OSError) as error:       # one sentence instead of a traceback
        sys.exit(str(error))

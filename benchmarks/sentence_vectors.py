"""How near are a model's sentence vectors to those of another model, on sentences that neither was tuned on?

    python benchmarks/sentence_vectors.py --teacher DIR --text FILE ... [--model NAME ...] [--json]

Sentences of 5 to 40 words are drawn from the files, each once. For each model:

    random     Spearman's correlation of its cosines with the teacher's, over 100,000 pairs drawn at random
    near       the same over pairs of a sentence with one of the teacher's 20 nearest: the harder question
    first      share of sentences whose nearest other sentence is the teacher's nearest, too
    ten        share of the teacher's ten nearest that are among the model's ten

Beside the models stands the cosine of word counts, weighted by rarity (tf-idf).
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from math import log
from pathlib import Path

import numpy as np
import numpy.typing as npt

import mini_bert
from mini_bert.evaluation.ranking import spearman
from mini_bert.inference.embed import embed
from mini_bert.randomness import generator
from mini_bert.text.corpora.sentences import split_sentences

PAIRS, NEAR, TEN = 100_000, 20, 10
Matrix = npt.NDArray[np.float32]


def sentences_of(files: Sequence[Path], count: int, seed: int) -> list[str]:
    found = {sentence for file in files for line in file.read_text("utf-8").split("\n") for sentence in
             split_sentences(line) if 5 <= len(sentence.split()) <= 40}
    return [str(sentence) for sentence in generator(seed, "sentences").permutation(sorted(found))[:count]]


def word_counts(texts: Sequence[str]) -> Matrix:
    """Unit vectors of word counts, each times the logarithm of how rare the word is."""
    bags = [Counter(text.lower().split()) for text in texts]
    rarity = Counter(word for bag in bags for word in bag)
    columns = {word: number for number, word in enumerate(rarity)}
    rows = np.zeros((len(texts), len(columns)), np.float32)
    for row, bag in zip(rows, bags, strict=True):
        for word, count in bag.items():
            row[columns[word]] = count * log(len(texts) / rarity[word])
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def cosines(vectors: Matrix) -> Matrix:
    """Of all pairs; a sentence is no neighbour of its own."""
    found = vectors @ vectors.T
    np.fill_diagonal(found, -2)
    return found


def compare(ours: Matrix, theirs: Matrix, seed: int) -> dict[str, float]:
    n = len(ours)
    first, second = generator(seed, "pairs").integers(0, n, (2, PAIRS))
    first, second = first[first != second], second[first != second]
    nearest = np.argsort(-theirs, axis=1)[:, :NEAR]
    own = np.argsort(-ours, axis=1)[:, :TEN]
    rows = np.repeat(np.arange(n), NEAR)
    shared = [len(np.intersect1d(a, b)) for a, b in zip(own, nearest[:, :TEN], strict=True)]
    return {"random": float(spearman(ours[first, second], theirs[first, second])),
            "near": float(spearman(ours[rows, nearest.ravel()], theirs[rows, nearest.ravel()])),
            "first": float((own[:, 0] == nearest[:, 0]).mean()), "ten": float(np.mean(shared) / TEN)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", required=True, help="the directory of a sentence-embedding model")
    parser.add_argument("--text", required=True, action="append", type=Path, help="a file of text; may be repeated")
    parser.add_argument("--model", action="append", help="a name or directory; may be repeated")
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    texts = sentences_of(options.text, options.sentences, options.seed)

    def vectors(name: str) -> Matrix:
        model = mini_bert.pipeline(name)
        return embed(model.model, model.tokenizer, texts)

    theirs = cosines(vectors(options.teacher))
    found = {"word counts": compare(cosines(word_counts(texts)), theirs, options.seed)}
    for name in options.model or ["mini-embed", "mini"]:
        found[name] = compare(cosines(vectors(name)), theirs, options.seed)
    if options.json:
        print(json.dumps({"sentences": len(texts), "seed": options.seed, "models": found}, indent=1))
        return
    print(f"{len(texts):,} sentences, seed {options.seed}; Spearman's correlation with the teacher's cosines")
    print(f"{'':24}{'random':>8}{'near':>8}{'first':>8}{'ten':>8}")
    for name, row in found.items():
        print(f"{name:24}{row['random']:8.3f}{row['near']:8.3f}{row['first']:8.1%}{row['ten']:8.1%}")


if __name__ == "__main__":
    main()

"""Dependency trees as distances and depths, and the scores of predicted distances and depths.

A minimum spanning tree is built from predicted distances, and the root is the word of the smallest predicted depth.
As in Hewitt and Manning (2019), punctuation is excluded and correlations use sentences of 5 to 50 words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array, BoolArray, IntArray
from ...errors import InputError
from ..formats.conllu import Sentence
from ..ranking import spearman
from ..result import Result

PUNCTUATION = "PUNCT"
_SHORTEST, _LONGEST = 5, 50           # words of the sentences that are used for correlations, as in the paper


@dataclass(frozen=True)
class StructuralScores(Result):
    """The metrics of the paper."""

    uuas: float               # share of undirected edges of the tree that the predicted spanning tree contains
    distance_spearman: float
    depth_spearman: float
    root_accuracy: float


class Trees(NamedTuple):
    """Sentences of the same length n: the rows of their vectors, and their trees."""

    rows: IntArray            # (S, n)
    distances: Array          # (S, n, n) float32
    depths: Array             # (S, n) float32
    words: BoolArray          # (S, n), False for punctuation


def tree_distances(heads: Sequence[int]) -> tuple[IntArray, IntArray]:
    """The number of edges between each pair of words (n, n), and the depth of each word (n,), 0 for the root."""
    n = len(heads)
    above = np.zeros((n, n), bool)            # above[i, j]: j is i or an ancestor of i
    depths = np.zeros(n, np.int64)
    for i in range(n):
        here = i
        while True:
            above[i, here] = True
            if heads[here] == 0:
                break
            depths[i] += 1
            here = heads[here] - 1
    common = above.astype(np.float32) @ above.T.astype(np.float32)            # number of common ancestors
    return depths[:, None] + depths - 2 * (common.astype(np.int64) - 1), depths


def by_sentence_length(sentences: Sequence[Sentence]) -> list[Trees]:
    """Group sentences by length; rows are indices of words, counted through all sentences."""
    groups: dict[int, list[tuple[int, Sentence]]] = {}
    start = 0
    for sentence in sentences:
        if sentence.heads is None or sentence.upos is None:
            raise InputError("The structural probe needs heads and UPOS tags in every sentence.")
        groups.setdefault(len(sentence.words), []).append((start, sentence))
        start += len(sentence.words)
    made = []
    for n, members in sorted(groups.items()):
        trees = [tree_distances(sentence.heads or ()) for _, sentence in members]
        made.append(Trees(np.array([first for first, _ in members])[:, None] + np.arange(n),
                          np.array([distances for distances, _ in trees], np.float32),
                          np.array([depths for _, depths in trees], np.float32),
                          np.array([[tag != PUNCTUATION for tag in sentence.upos or ()] for _, sentence in members])))
    return made


# ---------------------------------------------------------------- scores


def spanning_edges(distances: Array, words: BoolArray) -> BoolArray:
    """The minimum spanning tree of each sentence over `words` (S, n): (S, n, n), True at (i, j) and (j, i).

    Prim's algorithm: start with the first word, and repeatedly add the nearest word outside the tree.
    """
    S, n = words.shape
    edges = np.zeros((S, n, n), bool)
    each = np.arange(S)
    inside = np.zeros((S, n), bool)
    inside[each, words.argmax(axis=1)] = True
    nearest = np.repeat(words.argmax(axis=1)[:, None], n, axis=1)             # the nearest word inside the tree
    reach = np.where(words, distances[each, words.argmax(axis=1)], np.inf).astype(np.float64)
    for _ in range(n - 1):
        outside = np.where(inside, np.inf, reach)
        new = outside.argmin(axis=1)
        some = np.flatnonzero(np.isfinite(outside[each, new]))                # sentences with words left to add
        i, j = new[some], nearest[some, new[some]]
        edges[some, i, j] = edges[some, j, i] = True
        inside[some, i] = True
        closer = words[some] & (distances[some, i] < reach[some])
        reach[some] = np.where(closer, distances[some, i], reach[some])
        nearest[some] = np.where(closer, i[:, None], nearest[some])
    return edges


def edges_found(trees: Sequence[Trees], distances: Sequence[Array]) -> tuple[int, int]:
    """How many undirected edges of the trees the spanning trees of predicted distances contain, and of how many."""
    right = edges = 0
    for group, d in zip(trees, distances, strict=True):
        gold = spanning_edges(group.distances, group.words)
        right += int((gold & spanning_edges(d, group.words)).sum())
        edges += int(gold.sum())
    return right // 2, edges // 2                 # each is at (i, j) and (j, i)


def structural_scores(trees: Sequence[Trees], distances: Sequence[Array], depths: Sequence[Array]) -> StructuralScores:
    """The scores of predicted distances (S, n, n) and depths (S, n), given for each group of `trees`."""
    roots = sentences = 0
    by_length: list[tuple[float, float]] = []
    for group, d, depth in zip(trees, distances, depths, strict=True):
        some = group.words.any(axis=1)
        least = np.where(group.words, depth, np.inf).argmin(axis=1)
        top = np.where(group.words, group.depths, np.inf).argmin(axis=1)
        roots += int((least == top)[some].sum())
        sentences += int(some.sum())
        if _SHORTEST <= group.rows.shape[1] <= _LONGEST:
            by_length.append((float(np.mean(spearman(d, group.distances))),
                              float(np.mean(spearman(depth, group.depths)))))
    right, edges = edges_found(trees, distances)
    if not edges or not by_length:
        raise InputError(f"The structural probe needs a test sentence of {_SHORTEST} to {_LONGEST} words.")
    # as in the paper: the mean over sentences of each length, then over lengths
    of_distances, of_depths = (float(np.mean(column)) for column in zip(*by_length, strict=True))
    return StructuralScores(right / edges, of_distances, of_depths, roots / max(sentences, 1))


def linear_chain(trees: Sequence[Trees]) -> StructuralScores:
    """A baseline that only knows word order: neighbours are connected, and the first word is the root."""
    places = [np.arange(group.rows.shape[1], dtype=np.float32) for group in trees]
    return structural_scores(
        trees, [np.broadcast_to(np.abs(p[:, None] - p), group.distances.shape)
                for p, group in zip(places, trees, strict=True)],
        [np.broadcast_to(p, group.depths.shape) for p, group in zip(places, trees, strict=True)])

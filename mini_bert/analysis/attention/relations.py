"""Which heads attend along dependency relations, after Clark et al. (2019).

The attention of a head between words is made from that between their pieces (derivation: docs/math/word_attention.md):

    a_uv = 1/|u| sum over the pieces i of u and j of v of A_ij

To a word it is the sum over its pieces, from a word the mean, so that a word's attention, with what goes to special
tokens, still adds up to 1. A head answers with the other word that it attends to most, and its accuracy at a relation
is the share of right answers, in two directions:

    dependent to head    asked at every word with the relation; right is its head
    head to dependent    asked at every word with dependents of the relation; right is any of them

The best of many heads is good by chance as well. It is therefore chosen on one half of the sentences and measured on
the other, and so is what it is held against: the best answer "the word k places further".
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.arrays import Array, BoolArray, IntArray
from ...core.model import MiniBERT
from ...errors import DataError, InputError
from ...evaluation.formats.conllu import Sentence
from ...evaluation.probabilities import Floats
from ...evaluation.probes.word_vectors import Alignment, align_words
from ...evaluation.result import Result
from ...evaluation.statistics import Interval, wilson_interval
from ...inference.inputs import batches_by_length, pad_sequences, require_vocabulary
from ...randomness import generator
from ...text.tokenizer import Tokenizer
from ...workers import workers

DIRECTIONS = ("dependent to head", "head to dependent")
ROOT = "root"                             # has no head, and is left out
_AT_A_TIME = 32                           # sentences
_NONE = -1                                # the answer of a head that attends to no other word


@dataclass(frozen=True)
class RelationHead(Result):
    """The best head at a relation in one direction, and the best fixed place, chosen on one half of the sentences."""

    relation: str
    direction: str
    layer: int
    head: int
    chosen: float                         # its accuracy where it was chosen
    accuracy: Interval
    offset: int                           # of the best place, in words: -1 is the word before
    offset_chosen: float
    baseline: Interval
    every_head: Floats                    # (L, A), accuracies where they are measured


@dataclass(frozen=True)
class RelationReport(Result):
    """All relations in both directions. A relation that one half of the sentences lacks is not among them."""

    heads: list[RelationHead]
    sentences: int
    left_out: int                         # sentences that are longer than the model takes

    @property
    def relations(self) -> list[str]:
        """The most frequent first."""
        return list(dict.fromkeys(found.relation for found in self.heads))

    def best(self, relation: str) -> tuple[RelationHead, RelationHead]:
        """The better direction of a relation for heads, and for places, by the sentences that they were chosen on."""
        both = [found for found in self.heads if found.relation == relation]
        if not both:
            raise InputError(f"There is no relation {relation!r} in both halves of the sentences.")
        return max(both, key=lambda found: found.chosen), max(both, key=lambda found: found.offset_chosen)


def relation_heads(model: MiniBERT, tokenizer: Tokenizer, sentences: Sequence[Sentence], *, seed: int = 0,
                   threads: int = 0, progress: Callable[[int, int], None] | None = None) -> RelationReport:
    """For each universal relation (nsubj:pass counts as nsubj): the best head, chosen on half of the sentences."""
    require_vocabulary(model, tokenizer)
    for sentence in sentences:
        if sentence.heads is None or sentence.relations is None:
            raise DataError("A sentence has no heads or no relations; a treebank in CoNLL-U has both.")
    whole = align_words(tokenizer, [sentence.words for sentence in sentences], model.config.max_seq_length)
    fits = whole.window[whole.offsets[:-1]] == whole.window[whole.offsets[1:] - 1]        # in one window
    kept = [sentence for sentence, fit in zip(sentences, fits.tolist(), strict=True) if fit]
    if len(kept) < 2:
        raise DataError(f"{len(kept)} of {len(sentences)} sentences fit into the model's {model.config.max_seq_length} "
                        "tokens; two are needed.")
    alignment = align_words(tokenizer, [sentence.words for sentence in kept], model.config.max_seq_length)
    answers = attended_words(model, tokenizer, alignment, threads=threads, progress=progress)
    second = np.zeros(len(kept), bool)
    second[generator(seed, "relation heads").permutation(len(kept))[len(kept) // 2 :]] = True
    words = _Words(kept, alignment.offsets, np.repeat(second, np.diff(alignment.offsets)))
    found = [_best(relation, direction, *words.asked(relation, direction, answers))
             for relation in words.relations() for direction in DIRECTIONS]
    return RelationReport([one for one in found if one is not None], len(kept), len(sentences) - len(kept))


# ---------------------------------------------------------------- attention between words

def word_attention(weights: Array, pieces: Array) -> Array:
    """Attention of tokens (B, A, T, T) -> of words (B, A, n, n); `pieces` (B, n, T) is 1 at the pieces of each word."""
    counts = np.maximum(pieces.sum(axis=2, keepdims=True), 1)
    between: Array = (pieces / counts)[:, None] @ weights @ pieces.transpose(0, 2, 1)[:, None]
    return between


def most_attended(between: Array) -> IntArray:
    """The other word that each word attends to most (B, A, n); -1 where it attends to none."""
    others = np.where(np.eye(between.shape[-1], dtype=bool), -1.0, between)
    return np.where(others.max(axis=-1) > 0, others.argmax(axis=-1), _NONE)


def attended_words(model: MiniBERT, tokenizer: Tokenizer, alignment: Alignment, *, threads: int = 0,
                   progress: Callable[[int, int], None] | None = None) -> IntArray:
    """The answer of every head at each word (N, L, A), an index into all words, of sentences of one window each."""
    L, A = model.config.num_layers, model.config.num_heads
    bounds, names = alignment.offsets, {f"attention_weights_{layer}": layer for layer in range(L)}
    found = np.full((int(bounds[-1]), L, A), _NONE)
    done = 0

    def one(numbers: IntArray) -> None:
        nonlocal done
        rows = numbers.tolist()
        ids, mask = pad_sequences([alignment.windows[i] for i in rows], tokenizer.vocabulary.pad)
        pieces = np.zeros((len(rows), int(np.diff(bounds)[numbers].max()), ids.shape[1]), model.dtype)
        for row, sentence in enumerate(rows):
            for word in range(bounds[sentence], bounds[sentence + 1]):
                start = alignment.start[word]
                pieces[row, word - bounds[sentence], start : start + alignment.pieces[word]] = 1
        seen = set[str]()

        def look(name: str, value: Array) -> Array:
            if name in names and value.shape[-2:] == (ids.shape[1],) * 2:
                seen.add(name)
                best = most_attended(word_attention(value, pieces))
                for row, sentence in enumerate(rows):
                    here = best[row, :, : bounds[sentence + 1] - bounds[sentence]].T                  # (n, A)
                    found[bounds[sentence] : bounds[sentence + 1], names[name]] = np.where(
                        here >= 0, here + bounds[sentence], _NONE)
            return value

        model.encode(ids, mask, forward_only=True, hook=look)
        if missing := sorted(names.keys() - seen):
            raise InputError(f"This model computes no {missing[0]}: its layers have no attention of this kind.")
        done += len(rows)
        if progress is not None:
            progress(min(done, len(alignment.windows)), len(alignment.windows))

    with workers(threads) as team:
        team.map(one, batches_by_length(alignment.windows, _AT_A_TIME))
    return found


# ---------------------------------------------------------------- relations

class _Words:
    """All words with their heads, as indices into all words, their relations, and the half that they belong to."""

    def __init__(self, sentences: Sequence[Sentence], bounds: IntArray, second: BoolArray):
        self.second = second
        self.head = np.concatenate([np.where(np.array(sentence.heads) > 0, np.array(sentence.heads) - 1 + start, _NONE)
                                    for sentence, start in zip(sentences, bounds[:-1], strict=True)])
        self.relation = np.array([name.split(":")[0] for sentence in sentences for name in sentence.relations or ()])

    def relations(self) -> list[str]:
        """The most frequent first."""
        counts = Counter(self.relation[self.head >= 0].tolist())
        return [name for name, _ in counts.most_common() if name != ROOT]

    def asked(self, relation: str, direction: str,
              answers: IntArray) -> tuple[BoolArray, BoolArray, list[IntArray]]:
        """At each word that is asked: is it in the second half; is each head right (Q, L, A); the right places."""
        dependents = np.flatnonzero((self.relation == relation) & (self.head >= 0))
        if direction == DIRECTIONS[0]:
            heads = self.head[dependents]
            return (self.second[dependents], answers[dependents] == heads[:, None, None],
                    [np.array([place]) for place in (heads - dependents).tolist()])
        heads, which = np.unique(self.head[dependents], return_inverse=True)
        given = answers[heads]                            # (Q, L, A); -1 is not asked for, and reads the last word
        right = (given >= 0) & (self.relation[given] == relation) & (self.head[given] == heads[:, None, None])
        places = np.split((dependents - heads[which])[np.argsort(which, kind="stable")], np.cumsum(np.bincount(which)))
        return self.second[heads], right, places[:-1]


def _best(relation: str, direction: str, second: BoolArray, right: BoolArray,
          places: list[IntArray]) -> RelationHead | None:
    """The best head and the best place on the first half, measured on the second."""
    if not second.any() or second.all():
        return None
    chosen, measured = right[~second].mean(axis=0), right[second]
    layer, head = (int(i) for i in np.unravel_index(chosen.argmax(), chosen.shape))
    counts = Counter(place for place in _of(places, ~second))
    offset = min(counts, key=lambda place: (-counts[place], abs(place), place))
    n = len(measured)
    return RelationHead(
        relation, direction, layer, head, float(chosen[layer, head]),
        wilson_interval(int(measured[:, layer, head].sum()), n), offset, counts[offset] / int((~second).sum()),
        wilson_interval(sum(place == offset for place in _of(places, second)), n), measured.mean(axis=0))


def _of(places: list[IntArray], half: BoolArray) -> Iterator[int]:
    return (place for number in np.flatnonzero(half).tolist() for place in places[number].tolist())

"""What the attention heads of a model look at, over one text or many.

Each figure is a mean over queries, which are the tokens of the texts; [CLS] and [SEP] ask nothing worth counting, but
as keys they stay, since heads do put weight there. The weight on a place is summed over the keys that are there; a
query that has no such key (no token before the first) has 0 there.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array, BoolArray, IntArray
from ...core.model import MiniBERT
from ...errors import InputError
from ...evaluation.metrics import fields_of
from ...evaluation.representations.geometry import attention_entropy_sums
from ...inference.inputs import by_length, padded, require_vocabulary
from ...text.vocabulary import Vocabulary
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from ..passes.sequences import eval_mode, read_sentence
from ..probabilities import Floats

# A head that looks everywhere is broad, wherever most of its weight falls by that; else it is of the type with the
# largest figure of those that reach their threshold; else mixed.
BROAD = 0.9                   # of the largest entropy there can be
HEAD_TYPES = {"previous": 0.5, "next": 0.5, "diagonal": 0.5, "delimiter": 0.5}


@dataclass(frozen=True)
class HeadStatistics:
    """One head: entropy in nats and as a share of ln(keys), distance in tokens, and mean weights on places."""

    layer: int
    head: int
    entropy: float
    normalised_entropy: float
    distance: float                       # sum over keys of weight |query - key|
    diagonal: float                       # on the token itself
    previous: float
    next: float
    cls: float
    sep: float
    punctuation: float
    delimiter: float                      # [CLS], [SEP] and punctuation together
    same_word: float                      # on other tokens with the same id
    type: str

    def to_dict(self) -> dict[str, Any]:
        return fields_of(self)


@dataclass(frozen=True)
class HeadReport:
    """All heads; for a single text also its tokens and its weights (L, A, T, T)."""

    heads: list[HeadStatistics]
    texts: int
    queries: int
    cut: int                              # texts that were longer than the model takes
    empty: int                            # texts without tokens, left out
    tokens: list[str] | None = None
    weights: Array | None = None

    def head(self, layer: int, head: int) -> HeadStatistics:
        for found in self.heads:
            if (found.layer, found.head) == (layer, head):
                return found
        raise InputError(f"There is no head {head} in layer {layer}.")

    def to_dict(self) -> dict[str, Any]:
        weights = None if self.weights is None else self.weights.tolist()
        return {**fields_of(replace(self, weights=None)), "weights": weights}


def explore_attention_heads(model: MiniBERT, tokenizer: WordPieceTokenizer, texts: str | Sequence[str], *,
                            mask: Sequence[int] = (), batch_size: int = 16) -> HeadReport:
    """The statistics and type of every head, over one text or several; of one text its weights too.

    In a single text the tokens at the positions `mask` are replaced by [MASK].
    """
    require_vocabulary(model, tokenizer)
    model = eval_mode(model)
    given = [texts] if isinstance(texts, str) else list(texts)
    if len(mask) and not isinstance(texts, str):
        raise InputError("Positions to mask can be given for a single text only.")
    rows = [read_sentence(model, tokenizer, texts, mask=mask).ids.tolist()] if isinstance(texts, str) and len(mask) \
        else [tokenizer.encode(text) for text in given]
    longest = model.config.max_seq_length
    cut = sum(len(row) > longest for row in rows)
    rows = [row if len(row) <= longest else [*row[: longest - 1], row[-1]] for row in rows]
    some = [row for row in rows if len(row) > 2]
    if not some:
        raise InputError("There is no text with tokens, so the heads have nothing to look at.")
    sums, weights = _Sums(model, tokenizer.vocabulary), None
    for numbers in by_length(some, batch_size):
        ids, real = padded([some[i] for i in numbers], tokenizer.vocabulary.pad)
        _, cache = model.encode(ids, real)
        layers = [cache[f"attention_weights_{i}"] for i in range(model.config.num_layers)]
        sums.add(layers, ids, real)
        weights = np.stack([layer[0] for layer in layers]) if isinstance(texts, str) else None
    tokens = [tokenizer.vocabulary[i] for i in some[0]] if isinstance(texts, str) else None
    return HeadReport(sums.heads(), len(some), sums.queries, cut, len(rows) - len(some), tokens, weights)


_PLACES = ("distance", "diagonal", "previous", "next", "cls", "sep", "punctuation", "delimiter", "same_word")


class _Sums:
    """Figures of every head, summed over queries."""

    def __init__(self, model: MiniBERT, vocabulary: Vocabulary):
        self.shape = (model.config.num_layers, model.config.num_heads)
        self.vocabulary, self.punctuation = vocabulary, punctuation_ids(vocabulary)
        self.figures = {name: np.zeros(self.shape) for name in ("entropy", "normalised_entropy", *_PLACES)}
        self.queries = 0

    def add(self, layers: Sequence[Array], ids: IntArray, mask: BoolArray) -> None:
        words = (mask & self.vocabulary.ordinary[ids]) | (ids == self.vocabulary.mask)
        places = self._places(ids, mask)
        for i, weights in enumerate(layers):
            for name, normalised in (("entropy", False), ("normalised_entropy", True)):
                self.figures[name][i] += attention_entropy_sums(weights, mask, words, normalised)[0]
            asked = weights.transpose(0, 2, 1, 3)[words]                   # (queries, A, T)
            for name, place in places.items():
                self.figures[name][i] += np.einsum("qak,qk->a", asked, place[words], dtype=np.float64)
        self.queries += int(words.sum())

    def _places(self, ids: IntArray, mask: BoolArray) -> dict[str, Array]:
        """What each key counts for each query (B, T, T)."""
        B, T = ids.shape
        ahead = np.arange(T)[None, :] - np.arange(T)[:, None]              # key less query
        keys = {"cls": ids == self.vocabulary.cls, "sep": ids == self.vocabulary.sep, "punctuation":
                self.punctuation[ids]}
        keys["delimiter"] = keys["cls"] | keys["sep"] | keys["punctuation"]
        by_query = {"distance": np.abs(ahead), "diagonal": ahead == 0, "previous": ahead == -1, "next": ahead == 1}
        same = (ids[:, :, None] == ids[:, None, :]) & (ahead != 0)
        found = {name: np.broadcast_to(place, (B, T, T)) for name, place in by_query.items()}
        found |= {name: np.broadcast_to(place[:, None, :], (B, T, T)) for name, place in keys.items()}
        real = mask[:, None, :]
        return {name: (found | {"same_word": same})[name] * real.astype(np.float64) for name in _PLACES}

    def heads(self) -> list[HeadStatistics]:
        if not self.queries:
            raise InputError("None of the words is known to the model, so its heads have nothing to look from.")
        found = []
        for layer in range(self.shape[0]):
            for head in range(self.shape[1]):
                means = {name: float(sums[layer, head]) / self.queries for name, sums in self.figures.items()}
                found.append(HeadStatistics(layer, head, **means, type=head_type(means)))
        return found


def head_type(figures: dict[str, float]) -> str:
    """previous, next, diagonal, delimiter, broad or mixed, by HEAD_TYPES and BROAD."""
    if figures["normalised_entropy"] >= BROAD:
        return "broad"
    reached = [name for name, threshold in HEAD_TYPES.items() if figures[name] >= threshold]
    return max(reached, key=lambda name: figures[name]) if reached else "mixed"


def punctuation_ids(vocabulary: Vocabulary) -> BoolArray:
    """By id: is the piece made of punctuation alone?"""
    return np.array([ordinary and all(unicodedata.category(letter)[0] == "P" for letter in piece)
                     for piece, ordinary in zip(vocabulary, vocabulary.ordinary, strict=True)])


class QueryKey(NamedTuple):
    """A score taken apart: Q and K (d_k,) of a pair of tokens, and what each dimension adds to the score."""

    query: str
    key: str
    Q: Array
    K: Array
    terms: Floats                         # Q K / sqrt(d_k), dimension by dimension
    score: float
    weight: float                         # after softmax

    def to_dict(self) -> dict[str, Any]:
        return {"query": self.query, "key": self.key, "Q": self.Q.tolist(), "K": self.K.tolist(),
                "terms": self.terms.tolist(), "score": self.score, "weight": self.weight}


def query_key_terms(model: MiniBERT, tokenizer: WordPieceTokenizer, text: str, layer: int, head: int, query: int,
                    key: int, *, mask: Sequence[int] = ()) -> QueryKey:
    """Why the token at position `query` looks at the one at `key`, in one head."""
    sentence = read_sentence(model, tokenizer, text, mask=mask)
    T, L, A = len(sentence.ids), model.config.num_layers, model.config.num_heads
    for name, value, size in (("layer", layer, L), ("head", head, A), ("query", query, T), ("key", key, T)):
        if not 0 <= value < size:
            raise InputError(f"There is no {name} {value}; choose 0 to {size - 1}.")
    _, cache = eval_mode(model).encode(sentence.ids[None])
    Q, K = cache[f"Q_{layer}"][0, head, query], cache[f"K_{layer}"][0, head, key]
    terms = Q.astype(np.float64) * K / np.sqrt(len(Q))
    return QueryKey(sentence.tokens[query], sentence.tokens[key], Q, K, terms, float(terms.sum()),
                    float(cache[f"attention_weights_{layer}"][0, head, query, key]))

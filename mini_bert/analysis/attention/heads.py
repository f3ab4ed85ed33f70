"""What the attention heads of a model attend to, over one text or many.

Each statistic is a mean over queries, which are the tokens of the texts. [CLS] and [SEP] do not count as queries, but
they do as keys, since heads put weight on them. The weight on a target, such as the previous token, is summed over
the keys that match it; a query without such a key counts as 0.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.arrays import Array, BoolArray, IntArray
from ...core.cache import of_every_layer, of_layer
from ...core.model import MiniBERT
from ...errors import InputError
from ...evaluation.probabilities import Floats
from ...evaluation.representations.geometry import attention_entropy_sums
from ...evaluation.result import Result
from ...inference.inputs import batches_by_length, pad_sequences, require_vocabulary
from ...text.tokenizer import Tokenizer
from ...text.vocabulary import Vocabulary
from ..passes.forward_steps import forward_pass
from ..passes.sequences import read_sentence

# A head with nearly uniform attention is broad. Otherwise it has the type with the largest weight among those that
# reach their threshold, or else it is mixed.
BROAD = 0.9                   # of the largest possible entropy
HEAD_TYPES = {"previous": 0.5, "next": 0.5, "diagonal": 0.5, "delimiter": 0.5}


@dataclass(frozen=True)
class HeadStatistics(Result):
    """One head: entropy in nats and as a share of ln(keys), distance in tokens, and mean weights on kinds of keys."""

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


@dataclass(frozen=True)
class HeadReport(Result):
    """All heads; for a single text also its tokens and its weights (L, A, T, T)."""

    heads: list[HeadStatistics]
    texts: int
    queries: int
    cut: int                              # texts that were truncated to the model's length
    empty: int                            # texts without tokens, which are ignored
    tokens: list[str] | None = None
    weights: Array | None = None

    def head(self, layer: int, head: int) -> HeadStatistics:
        for found in self.heads:
            if (found.layer, found.head) == (layer, head):
                return found
        raise InputError(f"There is no head {head} in layer {layer}.")


def explore_attention_heads(model: MiniBERT, tokenizer: Tokenizer, texts: str | Sequence[str], *,
                            mask: Sequence[int] = (), pair: str = "", batch_size: int = 16) -> HeadReport:
    """The statistics and type of every head, over one text or several; for a single text also the weights.

    In a single text the tokens at the positions `mask` are replaced by [MASK]; `pair` is the second text beside it.
    """
    require_vocabulary(model, tokenizer)
    given = [texts] if isinstance(texts, str) else list(texts)
    if (len(mask) or pair) and not isinstance(texts, str):
        raise InputError("mask and pair are only possible for a single text.")
    one = read_sentence(model, tokenizer, texts, mask=mask, pair=pair) \
        if isinstance(texts, str) and (len(mask) or pair) else None
    rows = [one.ids.tolist()] if one is not None else [tokenizer.encode(text) for text in given]
    longest = model.config.max_seq_length
    cut = sum(len(row) > longest for row in rows)
    around, after = tokenizer.template.added(), tokenizer.template.after
    rows = [row if len(row) <= longest else [*row[: longest - len(after)], *after] for row in rows]
    some = [row for row in rows if len(row) > around]
    if not some:
        raise InputError("There is no text with tokens; give at least one.")
    sums, weights = _Sums(model, tokenizer.vocabulary), None
    for numbers in batches_by_length(some, batch_size):
        ids, real = pad_sequences([some[i] for i in numbers], tokenizer.vocabulary.pad)
        _, cache = model.encode(ids, real, token_types=None if one is None or one.types is None else one.types[None])
        layers = of_every_layer(cache, "attention_weights", model.config.num_layers)
        sums.add(layers, ids, real)
        weights = np.stack([layer[0] for layer in layers]) if isinstance(texts, str) else None
    tokens = [tokenizer.vocabulary[i] for i in some[0]] if isinstance(texts, str) else None
    return HeadReport(sums.heads(), len(some), sums.queries, cut, len(rows) - len(some), tokens, weights)


_TARGETS = ("distance", "diagonal", "previous", "next", "cls", "sep", "punctuation", "delimiter", "same_word")


class _Sums:
    """Statistics of every head, summed over queries."""

    def __init__(self, model: MiniBERT, vocabulary: Vocabulary):
        self.shape = (model.config.num_layers, model.config.num_heads)
        self.vocabulary, self.punctuation = vocabulary, punctuation_ids(vocabulary)
        self.figures = {name: np.zeros(self.shape) for name in ("entropy", "normalised_entropy", *_TARGETS)}
        self.queries = 0

    def add(self, layers: Sequence[Array], ids: IntArray, mask: BoolArray) -> None:
        words = (mask & self.vocabulary.ordinary[ids]) | (ids == self.vocabulary.roles.get("mask", -1))
        targets = self._targets(ids, mask)
        for i, weights in enumerate(layers):
            for name, normalised in (("entropy", False), ("normalised_entropy", True)):
                self.figures[name][i] += attention_entropy_sums(weights, mask, words, normalised)[0]
            rows = weights.transpose(0, 2, 1, 3)[words]                    # (queries, A, T)
            for name, target in targets.items():
                self.figures[name][i] += np.einsum("qak,qk->a", rows, target[words], dtype=np.float64)
        self.queries += int(words.sum())

    def _targets(self, ids: IntArray, mask: BoolArray) -> dict[str, Array]:
        """For each statistic, the factor of every query and key (B, T, T)."""
        B, T = ids.shape
        ahead = np.arange(T)[None, :] - np.arange(T)[:, None]              # key position minus query position
        keys = {role: ids == self.vocabulary.roles.get(role, -1) for role in ("cls", "sep")}
        keys["punctuation"] = self.punctuation[ids]
        keys["delimiter"] = keys["cls"] | keys["sep"] | keys["punctuation"]
        by_query = {"distance": np.abs(ahead), "diagonal": ahead == 0, "previous": ahead == -1, "next": ahead == 1}
        same = (ids[:, :, None] == ids[:, None, :]) & (ahead != 0)
        found = {name: np.broadcast_to(target, (B, T, T)) for name, target in by_query.items()}
        found |= {name: np.broadcast_to(target[:, None, :], (B, T, T)) for name, target in keys.items()}
        real = mask[:, None, :]
        return {name: (found | {"same_word": same})[name] * real.astype(np.float64) for name in _TARGETS}

    def heads(self) -> list[HeadStatistics]:
        if not self.queries:
            raise InputError("None of the words is in the vocabulary; give a text with known words.")
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
    """For each id: does the token consist of punctuation only?"""
    return np.array([ordinary and all(unicodedata.category(letter)[0] == "P" for letter in piece)
                     for piece, ordinary in zip(vocabulary, vocabulary.ordinary, strict=True)])


@dataclass(frozen=True)
class QueryKey(Result):
    """One attention score by dimension: Q and K (d_k,) of a pair of tokens as they are multiplied, and the terms.

    Score terms may have changed Q and K before, as rotary positions do, and add what is in `biases`. A key that the
    query may not see has the score minus infinity.
    """

    query: str
    key: str
    Q: Array
    K: Array
    terms: Floats                         # Q K / sqrt(d_k), dimension by dimension
    biases: dict[str, float]              # by the name of the step that adds it
    score: float
    weight: float                         # after softmax


def query_key_terms(model: MiniBERT, tokenizer: Tokenizer, text: str, layer: int, head: int, query: int,
                    key: int, *, mask: Sequence[int] = ()) -> QueryKey:
    """Why the token at position `query` attends to the one at `key`, in one head."""
    sentence = read_sentence(model, tokenizer, text, mask=mask)
    T, L, A = len(sentence.ids), model.config.num_layers, model.config.num_heads
    for name, value, size in (("layer", layer, L), ("head", head, A), ("query", query, T), ("key", key, T)):
        if not 0 <= value < size:
            raise InputError(f"There is no {name} {value}; choose 0 to {size - 1}.")
    passed, at = forward_pass(model, sentence.ids, sentence.tokens), (head, query, key)
    weight = of_layer(passed.arrays, "attention_weights", layer)[at]
    scores = passed[f"scores_{layer}"]
    q, k, *added = scores.inputs
    Q, K = passed[q].array[head, query], passed[k].array[head, key]
    terms = Q.astype(np.float64) * K / np.sqrt(len(Q))
    biases = {name: float(np.broadcast_to(passed[name].array, scores.shape)[at]) for name in added}
    score = -np.inf if np.isneginf(scores.array[at]) else float(terms.sum()) + sum(biases.values())
    return QueryKey(sentence.tokens[query], sentence.tokens[key], Q, K, terms, biases, score, float(weight))

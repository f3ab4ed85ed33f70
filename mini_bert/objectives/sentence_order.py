"""Sentence-order prediction (ALBERT): are two consecutive sentences of a document in their order, or swapped?

    loss = sum over pairs of -ln p(relation)       p = softmax(pool(h) W_N + b_N)       0: in order, 1: swapped

Both sentences are always of one document, so the topic gives nothing away, as it does in next-sentence prediction.
Derivation: docs/math/sentence_pairs.md
"""

from ..core.registry import register
from ..text.sequences.pairs import SwappedPairs
from .next_sentence import NextSentence


@register("objective", "sentence_order")
class SentenceOrder(NextSentence):
    main: str = "sentence_order"
    shares_pass = True
    pairs = SwappedPairs

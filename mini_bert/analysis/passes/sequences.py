"""A text as a model sees it: ids, tokens, and the words that are to be found.

BERT finds a word behind a mask, in the row of the logits where the mask stands. A causal model reads only what comes
before, so nothing is masked for it: it finds a word in the row before the word's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...core.config import PAD
from ...core.model import MiniBERT
from ...errors import InputError
from ...evaluation.result import Result
from ...inference.inputs import pad_sequences, require_vocabulary
from ...randomness import generator
from ...text.tokenizer import Tokenizer

SHARE = 0.15                  # of the words, masked where a loss is wanted and the text has no masks


@dataclass(frozen=True)
class Sentence(Result):
    """One sequence, and for some rows of the logits the id that the model should find there."""

    ids: npt.NDArray[np.int64]            # (T,)
    tokens: list[str]
    targets: dict[int, int]
    types: npt.NDArray[np.int64] | None = None            # (T,), of a pair read by a model that has token types

    @property
    def positions(self) -> list[int]:
        return sorted(self.targets)


def ahead(model: MiniBERT) -> int:
    """How far behind its row of the logits a token stands: 1 if the model is causal."""
    return int(model.modules.causal)


def row_asked(model: MiniBERT, position: int) -> int:
    """The row of the logits in which the token at this position is found."""
    if position < ahead(model):
        raise InputError("A causal model cannot predict the first token: nothing comes before it.")
    return position - ahead(model)


def read_sentence(model: MiniBERT, tokenizer: Tokenizer, text: str, *, mask: Sequence[int] = (),
                  targets: Mapping[int, str | int] | None = None, pair: str = "") -> Sentence:
    """[CLS] text [SEP], or with a `pair` [CLS] text [SEP] pair [SEP].

    The tokens at the positions `mask` become [MASK], and are its targets unless others are given. `targets` gives the
    word to find at a position, as a piece of the vocabulary or its id. Position 0 is that of [CLS]. For a causal model
    the tokens stay.
    """
    require_vocabulary(model, tokenizer)
    ids, kinds = plain_ids(tokenizer, text, pair)
    if len(ids) > model.config.max_seq_length:
        raise InputError(f"The text has {len(ids)} tokens; the model takes {model.config.max_seq_length}.")
    array, vocabulary = np.array(ids, np.int64), tokenizer.vocabulary
    wanted: dict[int, int] = {}
    for position in mask:
        place = _inside(position, len(ids))
        wanted[row_asked(model, place)] = ids[place]
        if not model.modules.causal:
            array[place] = vocabulary.mask
    for position, word in (targets or {}).items():
        wanted[row_asked(model, _inside(position, len(ids)))] = _id(word, tokenizer)
    types = np.array(kinds, np.int64) if pair and model.config.token_types else None
    return Sentence(array, [vocabulary[i] for i in array.tolist()], wanted, types)


def plain_ids(tokenizer: Tokenizer, text: str, pair: str = "") -> tuple[list[int], list[int]]:
    """The ids of a text or of a pair, with [MASK] where it is written, and the token types."""
    if pair:
        return tokenizer.encode_pair(tokenizer.with_mask(text), tokenizer.with_mask(pair))
    ids = tokenizer.encode(tokenizer.with_mask(text))
    return ids, [0] * len(ids)


def masked_sentence(model: MiniBERT, tokenizer: Tokenizer, text: str, *, mask: Sequence[int] = (),
                    targets: Mapping[int, str | int] | None = None, seed: int = 0) -> Sentence:
    """As `read_sentence`, with something to find: where nothing is given, 15 % of the words, by the seed."""
    sentence = read_sentence(model, tokenizer, text, mask=mask, targets=targets)
    if sentence.targets:
        return sentence
    vocabulary = tokenizer.vocabulary
    masks = masks_in(sentence.ids, tokenizer)
    if masks:
        raise InputError(f"The text has [MASK] at position {masks[0]}; say which word belongs there, for instance "
                         f"targets={{{masks[0]}: 'word'}}.")
    words = np.flatnonzero(vocabulary.ordinary[sentence.ids])
    words = words[words >= ahead(model)]
    if not len(words):
        raise InputError("The text has no word that could be masked.")
    count = max(1, round(SHARE * len(words)))
    chosen = np.sort(generator(seed, "masks to explain").choice(words, count, replace=False)).tolist()
    return read_sentence(model, tokenizer, text, mask=chosen)


def masks_in(ids: npt.NDArray[np.int64], tokenizer: Tokenizer) -> list[int]:
    """The positions of [MASK]; none where the vocabulary has no such token."""
    found: list[int] = np.flatnonzero(ids == tokenizer.vocabulary.roles.get("mask", -1)).tolist()
    return found


class SentenceBatch(NamedTuple):
    """Sentences of one length, with their targets in reading order and the sentence that each belongs to."""

    ids: npt.NDArray[np.int64]            # (B, T)
    mask: npt.NDArray[np.bool_]
    positions: npt.NDArray[np.bool_]
    targets: npt.NDArray[np.int64]        # (M,)
    owners: npt.NDArray[np.int64]         # (M,)


def sentence_batch(sentences: Sequence[Sentence]) -> SentenceBatch:
    """Sentences side by side; each must have a target."""
    if not sentences:
        raise InputError("There is no sentence to measure.")
    without = [number for number, sentence in enumerate(sentences) if not sentence.targets]
    if without:
        raise InputError(f"Sentence {without[0]} has no target, so it has no loss.")
    ids, mask = pad_sequences([sentence.ids.tolist() for sentence in sentences], PAD)
    positions = np.zeros(ids.shape, bool)
    for row, sentence in enumerate(sentences):
        positions[row, sentence.positions] = True
    targets = [sentence.targets[position] for sentence in sentences for position in sentence.positions]
    return SentenceBatch(ids, mask, positions, np.array(targets, np.int64), np.nonzero(positions)[0])


def _inside(position: int, length: int) -> int:
    if isinstance(position, bool) or not isinstance(position, int | np.integer) or not 0 <= position < length:
        raise InputError(f"There is no position {position}; the text's tokens are at 0 to {length - 1}.")
    return int(position)


def _id(word: str | int, tokenizer: Tokenizer) -> int:
    vocabulary = tokenizer.vocabulary
    if isinstance(word, str):
        if word in vocabulary.ids:
            return vocabulary.ids[word]
        ids = tokenizer.word_ids(word)
        if len(ids) != 1 or ids[0] == vocabulary.roles.get("unk"):
            raise InputError(f"{word[:100]!r} is not one piece of the vocabulary, so it cannot be a target.")
        return ids[0]
    if not 0 <= word < len(vocabulary):
        raise InputError(f"There is no piece {word}; the vocabulary's ids are 0 to {len(vocabulary) - 1}.")
    return int(word)

"""Extending a vocabulary with frequent words of a new domain.

New words are appended, so existing ids keep their meaning; frequent words of several pieces become single pieces.
"""

from collections.abc import Mapping

from ...errors import VocabularyError
from ..vocabulary import Vocabulary
from .tokenizer import MAX_WORD_LENGTH, WordPieceTokenizer


def grow_vocabulary(tokenizer: WordPieceTokenizer, words: Mapping[str, int], most: int, *,
                    min_frequency: int = 20) -> WordPieceTokenizer:
    """The tokenizer with up to `most` new words: those that save the most pieces over the text.

    `words` is the result of `count_words`. Words that occur less than `min_frequency` times, too rarely to be learned,
    are left out.
    """
    if most < 0:
        raise VocabularyError(f"The number of new words must be at least 0, not {most}.")
    vocabulary = tokenizer.vocabulary
    saved = []
    for word, count in words.items():
        if count >= min_frequency and len(word) <= MAX_WORD_LENGTH and word not in vocabulary.ids:
            ids = tokenizer.ids(word)
            pieces = len(word) + 1 if ids == [vocabulary.unk] else len(ids)   # [UNK] is worse than single letters
            if pieces > 1:
                saved.append((-count * (pieces - 1), word))
    new = [word for _, word in sorted(saved)[:most]]
    return WordPieceTokenizer(Vocabulary([*vocabulary.pieces, *new], "The grown vocabulary"),
                              tokenizer.lowercase, tokenizer.strip_accents)

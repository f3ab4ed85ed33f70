"""Growing a vocabulary: the words of a new field, as pieces of their own behind those that are there.

Ids that a model has learned keep their meaning; what was cut into many pieces and occurs often becomes one.
"""

from collections.abc import Mapping

from ...errors import VocabularyError
from ..vocabulary import Vocabulary
from .tokenizer import MAX_WORD_LENGTH, WordPieceTokenizer


def grow_vocabulary(tokenizer: WordPieceTokenizer, words: Mapping[str, int], most: int, *,
                    min_frequency: int = 20) -> WordPieceTokenizer:
    """The tokenizer with at most `most` more words: those that spare the most pieces over the text.

    `words` are normalised and counted as `count_words` does it. A word that occurs less often than `min_frequency`
    has too little text to be learned from.
    """
    if most < 0:
        raise VocabularyError(f"The number of new words must be at least 0, not {most}.")
    vocabulary = tokenizer.vocabulary
    spared = []
    for word, count in words.items():
        if count >= min_frequency and len(word) <= MAX_WORD_LENGTH and word not in vocabulary.ids:
            ids = tokenizer.ids(word)
            pieces = len(word) + 1 if ids == [vocabulary.unk] else len(ids)   # worse than letter by letter
            if pieces > 1:
                spared.append((-count * (pieces - 1), word))
    new = [word for _, word in sorted(spared)[:most]]
    return WordPieceTokenizer(Vocabulary([*vocabulary.pieces, *new], "The grown vocabulary"),
                              tokenizer.lowercase, tokenizer.strip_accents)

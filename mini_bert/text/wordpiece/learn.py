"""Learning a vocabulary from text by byte-pair encoding, as the usual WordPiece trainers do.

The words of the text are counted. Each word is a sequence of symbols, initially its characters (with ## in front
inside a word). The most frequent pair of adjacent symbols is merged into a new symbol, which becomes a piece of the
vocabulary; this repeats until the vocabulary is full.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from ...errors import VocabularyError
from ..learner import Learner
from ..pair_merging import PairMerger
from ..vocabulary import CONTINUATION, SPECIAL_TOKENS, Vocabulary
from .normalise import normaliser
from .tokenizer import MAX_WORD_LENGTH, WordPieceTokenizer

_CHUNKS_IN_MEMORY = 1 << 20
Progress = Callable[[int], None]      # called with the number of pieces so far


def count_words(texts: Iterable[str], lowercase: bool = True, strip_accents: bool | None = None) -> Counter[str]:
    """How often each normalised word occurs."""
    table = normaliser(lowercase, lowercase if strip_accents is None else strip_accents)
    words: Counter[str] = Counter()
    raw: Counter[str] = Counter()     # chunks repeat, so each is normalised once and not at every occurrence

    def flush() -> None:
        for chunk, count in raw.items():
            for word in table.words(chunk):
                words[word] += count
        raw.clear()

    for text in texts:
        chunks = table.chunks(text)
        raw.update(chunk for chunk in chunks if len(chunk) <= MAX_WORD_LENGTH)
        for chunk in chunks:
            if len(chunk) > MAX_WORD_LENGTH:          # text without spaces, which will not repeat
                words.update(word for word in table.words(chunk) if len(word) <= MAX_WORD_LENGTH)
        if len(raw) > _CHUNKS_IN_MEMORY:
            flush()
    flush()
    return words


def learn_vocabulary(words: Mapping[str, int], vocab_size: int, *, min_frequency: int = 2,
                     alphabet_limit: int = 1000, progress: Progress | None = None) -> Vocabulary:
    """A vocabulary of at most `vocab_size` pieces, learned from words and their counts.

    Words with characters outside the `alphabet_limit` most frequent ones are ignored, and become [UNK]. Pairs that
    occur less than `min_frequency` times are not merged. Of equally frequent pairs, the older one is merged first.
    """
    letters: Counter[str] = Counter()
    for word, count in words.items():
        for letter in word:
            letters[letter] += count
    kept = {letter for letter, _ in sorted(letters.items(), key=lambda item: (-item[1], item[0]))[:alphabet_limit]}
    usable = sorted((word, count) for word, count in words.items()
                    if len(word) <= MAX_WORD_LENGTH and kept.issuperset(word))
    if not usable:
        raise VocabularyError("The text has no words to learn a vocabulary from.")
    inside = {letter for word, _ in usable for letter in word[1:]}
    pieces = [*SPECIAL_TOKENS, *sorted(kept), *(CONTINUATION + letter for letter in sorted(inside))]
    if vocab_size < len(pieces):
        raise VocabularyError(f"vocab_size={vocab_size} is too small: the special tokens and the {len(kept)} characters"
                              f" alone need {len(pieces)} pieces; raise it, or lower the alphabet limit.")
    merger = PairMerger(usable, pieces, CONTINUATION)
    if progress is not None:
        progress(len(merger.pieces))
    while len(merger.pieces) < vocab_size and merger.merge_most_frequent(min_frequency):
        if progress is not None:
            progress(len(merger.pieces))
    return Vocabulary(merger.pieces, "The learned vocabulary")


def learn_tokenizer(words: Mapping[str, int], vocab_size: int, *, lowercase: bool = True, min_frequency: int = 2,
                    alphabet_limit: int = 1000, progress: Progress | None = None) -> WordPieceTokenizer:
    """The tokenizer of a learned vocabulary."""
    return WordPieceTokenizer(learn_vocabulary(words, vocab_size, min_frequency=min_frequency,
                                               alphabet_limit=alphabet_limit, progress=progress), lowercase)


LEARNER = Learner(count_words, learn_tokenizer)

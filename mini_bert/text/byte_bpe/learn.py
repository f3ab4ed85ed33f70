"""Learning a vocabulary from text by byte-level BPE; `tokenizers` learns the same merges from the same text.

The words of the text (splitting.py) are counted. Each word is a sequence of bytes. The most frequent pair of adjacent
symbols is merged into a new symbol, which becomes a piece of the vocabulary; this repeats until the vocabulary is full.
The merges are kept in order, since encoding repeats them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from ...errors import VocabularyError
from ..learner import Learner
from ..pair_merging import PairMerger
from .alphabet import CHARACTERS, to_characters
from .layouts import layout_named
from .splitting import words as words_of
from .tokenizer import ByteBPETokenizer
from .tokenizer_files import spec_of

Progress = Callable[[int], None]      # called with the number of pieces so far


def count_words(texts: Iterable[str], add_prefix_space: bool = False) -> Counter[str]:
    """How often each word occurs, in the alphabet of bytes; with a space before each text, if it has none."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(words_of(" " + text if add_prefix_space and text and not text.startswith(" ") else text))
    return Counter({to_characters(word.encode("utf-8", "surrogatepass")): count for word, count in counts.items()})


def learn_tokenizer(words: Mapping[str, int], vocab_size: int, *, layout: str = "bert", add_prefix_space: bool = False,
                    min_frequency: int = 2, progress: Progress | None = None) -> ByteBPETokenizer:
    """A tokenizer of at most `vocab_size` pieces: the special tokens of the layout, the 256 bytes, and merged pieces.

    With `add_prefix_space` a text gets a space in front, so that its first word has the pieces of any other word. Pairs
    that occur less than `min_frequency` times are not merged. Of equally frequent pairs, the older one is first.
    """
    special = layout_named(layout)
    pieces = [*special.order, *sorted(CHARACTERS)]
    if vocab_size < len(pieces):
        raise VocabularyError(f"vocab_size={vocab_size} is too small: the special tokens and the 256 bytes alone need "
                              f"{len(pieces)} pieces.")
    if not words:
        raise VocabularyError("The text has no words to learn a vocabulary from.")
    merger = PairMerger(sorted(words.items()), pieces)
    if progress is not None:
        progress(len(merger.pieces))
    while len(merger.pieces) < vocab_size and merger.merge_most_frequent(min_frequency):
        if progress is not None:
            progress(len(merger.pieces))
    return ByteBPETokenizer(spec_of(merger.pieces, merger.merges, special._replace(trim_offsets=True), add_prefix_space,
                                    "The learned vocabulary"))


LEARNER = Learner(count_words, learn_tokenizer)

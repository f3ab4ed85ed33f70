"""Sentences of a corpus with one word hidden, and what a model makes of them."""

from typing import NamedTuple

from ..core.model import MiniBERT
from ..randomness import generator
from ..text.corpora.corpus import Corpus
from ..text.vocabulary import Vocabulary
from .fill_mask import Candidate, fill_mask

_SHORTEST, _LONGEST = 6, 24       # tokens of a sentence that is neither a heading nor hard to take in
_LOOKED_AT = 2000                 # sentences, at the most


class Example(NamedTuple):
    """A sentence with [MASK], the word that stood there, and the candidates."""

    text: str
    truth: str
    candidates: list[Candidate]


def examples(model: MiniBERT, corpus: Corpus, count: int = 5, *, split: str = "heldout", top: int = 5,
             seed: int = 0) -> list[Example]:
    """Sentences of a split, drawn by the seed; hidden are whole words, not endings or punctuation.

    Of sentences that are too long the beginning is taken, up to the end of a word.
    """
    rng, tokenizer = generator(seed, "examples"), corpus.tokenizer
    vocabulary = tokenizer.vocabulary
    found: dict[str, Example] = {}
    for sentence in rng.permutation(_sentences(corpus, split))[:_LOOKED_AT].tolist():
        ids = corpus.tokens[int(corpus.sentences[sentence]) : int(corpus.sentences[sentence + 1])].tolist()
        ids = _shortened(ids, vocabulary, min(_LONGEST, model.config.max_seq_length - 2))
        places = _whole_words(ids, vocabulary)
        if len(ids) < _SHORTEST or not places or not vocabulary.ordinary[ids].all():
            continue
        place = int(rng.choice(places))
        masked = [*ids[:place], vocabulary.mask, *ids[place + 1 :]]
        text = tokenizer.decode(masked)
        if text not in found and tokenizer.ids(text) == masked:
            found[text] = Example(text, vocabulary[ids[place]], fill_mask(model, tokenizer, text, top)[0])
            if len(found) == count:
                break
    return list(found.values())


def _sentences(corpus: Corpus, split: str) -> list[int]:
    """The numbers of all sentences of a split."""
    return [sentence for document in corpus.split(split).tolist()
            for sentence in range(int(corpus.documents[document]), int(corpus.documents[document + 1]))]


def _shortened(ids: list[int], vocabulary: Vocabulary, longest: int) -> list[int]:
    """At most `longest` tokens, without a word that would be cut."""
    if len(ids) <= longest:
        return ids
    while longest and vocabulary.continues[ids[longest]]:
        longest -= 1
    return ids[:longest]


def _whole_words(ids: list[int], vocabulary: Vocabulary) -> list[int]:
    """Where words of letters stand that are one piece; of one or two letters only if these are words, as in Chinese."""
    return [i for i, piece in enumerate(vocabulary[number] for number in ids)
            if piece.isalpha() and (len(piece) > 2 or not piece.isascii())
            and not (i + 1 < len(ids) and vocabulary.continues[ids[i + 1]])]

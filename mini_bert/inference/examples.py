"""Example predictions: sentences of a corpus with one word masked, and a model's candidates for it."""

from typing import NamedTuple

from ..core.model import MiniBERT
from ..randomness import generator
from ..text.corpora.corpus import Corpus
from ..text.vocabulary import Vocabulary
from .fill_mask import Candidate, fill_mask

_SHORTEST, _LONGEST = 6, 24       # tokens in an example
_TRIED = 2000                     # sentences, at most


class Example(NamedTuple):
    """A sentence with [MASK], the masked word, and the candidates."""

    text: str
    truth: str
    candidates: list[Candidate]


def examples(model: MiniBERT, corpus: Corpus, count: int = 5, *, split: str = "heldout", top: int = 5,
             seed: int = 0) -> list[Example]:
    """Random sentences of a split with one whole word masked; long sentences are truncated at the end of a word."""
    rng, tokenizer = generator(seed, "examples"), corpus.tokenizer
    vocabulary = tokenizer.vocabulary
    found: dict[str, Example] = {}
    for sentence in rng.permutation(_sentences(corpus, split))[:_TRIED].tolist():
        ids = corpus.tokens[int(corpus.sentences[sentence]) : int(corpus.sentences[sentence + 1])].tolist()
        ids = _shortened(ids, vocabulary, min(_LONGEST, model.config.max_seq_length - tokenizer.template.added()))
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
    """The first `longest` tokens, without the beginning of a word that continues after them."""
    if len(ids) <= longest:
        return ids
    while longest and vocabulary.continues[ids[longest]]:
        longest -= 1
    return ids[:longest]


def _whole_words(ids: list[int], vocabulary: Vocabulary) -> list[int]:
    """The positions of words that are one piece of letters, at least three if they are ASCII."""
    return [i for i, piece in enumerate(vocabulary[number] for number in ids)
            if piece.isalpha() and (len(piece) > 2 or not piece.isascii())
            and not (i + 1 < len(ids) and vocabulary.continues[ids[i + 1]])]

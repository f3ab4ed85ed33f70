"""Sentences of a corpus with one word hidden, and what a model makes of them."""

from typing import NamedTuple

import numpy as np

from ..core.model import MiniBERT
from ..randomness import generator
from ..text.corpus import Corpus
from .fill_mask import Candidate, fill_mask

_SHORTEST, _LONGEST = 8, 24       # tokens of a sentence that is neither a heading nor hard to take in


class Example(NamedTuple):
    """A sentence with [MASK], the word that stood there, and the candidates."""

    text: str
    truth: str
    candidates: list[Candidate]


def examples(model: MiniBERT, corpus: Corpus, count: int = 5, *, split: str = "heldout", top: int = 5,
             seed: int = 0) -> list[Example]:
    """Sentences of a split, drawn by the seed; hidden are whole words of letters, not endings or punctuation."""
    tokenizer, found = corpus.tokenizer, list[Example]()
    vocabulary = tokenizer.vocabulary
    documents = corpus.split(split)
    longest = min(_LONGEST, model.config.max_seq_length - 2)
    rng = generator(seed, "examples")
    for _ in range(50 * count):
        if not len(documents) or len(found) == count:
            break
        number = int(rng.choice(documents))
        sentence = int(rng.integers(corpus.documents[number], corpus.documents[number + 1]))
        ids = corpus.tokens[int(corpus.sentences[sentence]) : int(corpus.sentences[sentence + 1])].tolist()
        if len(ids) > longest:                # of text without ends of sentences, any stretch
            begin = int(rng.integers(len(ids) - longest))
            ids = ids[begin : begin + longest]
        pieces = [vocabulary[i] for i in ids]
        whole = [i for i, piece in enumerate(pieces) if piece.isalpha() and len(piece) > 2
                 and not (i + 1 < len(pieces) and vocabulary.continues[ids[i + 1]])]
        if not whole or vocabulary.unk in ids or vocabulary.mask in ids or len(ids) < _SHORTEST:
            continue
        place = int(rng.choice(np.array(whole)))
        text = tokenizer.decode([*ids[:place], vocabulary.mask, *ids[place + 1 :]])
        if tokenizer.ids(text) == [*ids[:place], vocabulary.mask, *ids[place + 1 :]]:
            found.append(Example(text, pieces[place], fill_mask(model, tokenizer, text, top)[0]))
    return found

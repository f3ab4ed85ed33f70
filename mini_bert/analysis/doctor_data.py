"""Diseases of the text that a run is trained on."""

import numpy as np
import numpy.typing as npt

from ..errors import CorpusError
from ..text.corpus import Corpus
from .symptoms import Case, Finding, Sure, disease

WINDOW = 32                   # tokens in a row; by chance they do not occur twice
LEAST_SENTENCE = 8            # tokens; shorter ones repeat in any text
MOST_TOKENS = 2_000_000       # looked at, in stretches spread over the corpus
DUPLICATE = 0.3               # of the text; Wikipedia and books have a thousandth, documentation a tenth
_STRETCH = 1 << 17


@disease("duplicate data", 30, waits=False)
def duplicate_data(case: Case) -> Finding | None:
    """Much of the text occurs again and again, and is learned by heart instead of from."""
    corpus = case.run.corpus
    share, looked_at = repeated_share(corpus)
    case.measured["repeated_text"] = share
    if share < DUPLICATE:
        return None
    return Finding("duplicate data", Sure.CERTAIN,
                   f"{share:.0%} of {looked_at:,} tokens stand in passages that have occurred before.",
                   {"repeated_share": share, "tokens_looked_at": float(looked_at),
                    "duplicate_paragraphs_left_out": float(corpus.manifest.duplicate_paragraphs)},
                   "Prepare the corpus again with deduplication, which is the default of mini-bert data prepare.")


def repeated_share(corpus: Corpus) -> tuple[float, int]:
    """The share of the training text that is a repetition, and how many tokens were looked at.

    The larger of two: places where a run of WINDOW tokens begins that has been seen, and tokens in whole sentences
    that have been seen, for texts whose documents are short and shuffled.
    """
    every = max(1, corpus.manifest.tokens // MOST_TOKENS)
    some = [tokens for n, tokens in enumerate(corpus.stretches("train", _STRETCH)) if n % every == 0]
    if any(int(tokens.max()) >= corpus.manifest.vocab_size for tokens in some):
        raise CorpusError(f"{corpus.directory} is damaged: it has ids beyond its vocabulary. Prepare it again.")
    if not some:
        raise CorpusError(f"{corpus.directory} has no text to train on.")
    windows = np.concatenate([window_hashes(tokens) for tokens in some])
    again = 1 - len(np.unique(windows)) / len(windows) if len(windows) else 0.0
    return max(again, _repeated_sentences(corpus)), int(sum(len(tokens) for tokens in some))


def window_hashes(tokens: npt.NDArray[np.int64], n: int = WINDOW) -> npt.NDArray[np.uint64]:
    """A hash of each n tokens in a row: sum t_k b^k modulo 2^64, b odd."""
    if len(tokens) < n:
        return np.empty(0, np.uint64)
    t, base = tokens.astype(np.uint64) + np.uint64(1), np.uint64(0x9E3779B97F4A7C15)
    found = np.zeros(len(t) - n + 1, np.uint64)
    for k in range(n):
        found *= base
        found += t[k : k + len(found)]
    return found


def _repeated_sentences(corpus: Corpus) -> float:
    borders = np.asarray(corpus.sentences).astype(np.int64)
    count = int(np.searchsorted(borders, MOST_TOKENS))
    seen: set[bytes] = set()
    repeated = total = 0
    for start, end in zip(borders[:count].tolist(), borders[1 : count + 1].tolist(), strict=False):
        if end - start >= LEAST_SENTENCE:
            sentence = corpus.tokens[start:end].tobytes()
            total += end - start
            repeated += end - start if sentence in seen else 0
            seen.add(sentence)
    corpus.release()
    return repeated / total if total else 0.0

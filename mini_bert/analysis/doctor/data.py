"""Problems of a run's training text."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...errors import CorpusError
from ...text.corpora.corpus import Corpus
from .symptoms import Case, Certainty, Finding, disease

WINDOW = 32                   # consecutive tokens; so long a window does not repeat by chance
LEAST_SENTENCE = 8            # tokens; shorter sentences repeat in any text
MOST_TOKENS = 2_000_000       # windows compared at most; a larger corpus is sampled by content
DUPLICATE = 0.3               # of the text; Wikipedia and books repeat a thousandth, documentation a tenth
_STRETCH = 1 << 17
_BASE = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))


@disease("duplicate data", 30, needs_curve=False)
def duplicate_data(case: Case) -> Finding | None:
    """Much of the text is repeated, so that it is memorised instead of learned from."""
    corpus = case.run.corpus
    share, count = repeated_share(corpus)
    case.measured["repeated_text"] = share
    if share < DUPLICATE:
        return None
    return Finding("duplicate data", Certainty.CERTAIN,
                   f"About {share:.0%} of {count:,} tokens are in repeated passages.",
                   {"repeated_share": share, "tokens": float(count),
                    "duplicate_paragraphs_left_out": float(corpus.manifest.duplicate_paragraphs)},
                   "Prepare the corpus again with deduplication, which is the default of mini-bert data prepare.")


def repeated_share(corpus: Corpus) -> tuple[float, int]:
    """The share of the training text that is repeated, and the number of its tokens.

    The larger of two shares: windows of WINDOW tokens that occur earlier, and tokens in whole sentences that occur
    earlier, for texts with short, shuffled documents. A large text is sampled by content, so that a sampled passage
    is sampled with all of its repetitions.
    """
    every = -(-corpus.manifest.tokens // MOST_TOKENS)
    hashes, count = [np.empty(0, np.uint64)], 0
    for tokens in corpus.token_chunks("train", _STRETCH):
        if int(tokens.max()) >= corpus.manifest.vocab_size:
            raise CorpusError(f"{corpus.directory} is damaged: it has ids beyond its vocabulary. Prepare it again.")
        found = window_hashes(tokens)
        hashes.append(found[_sampled(found, every)])
        count += len(tokens)
    if not count:
        raise CorpusError(f"{corpus.directory} has no training text; prepare it with fewer held-out documents.")
    windows = np.concatenate(hashes)
    repeated = 1 - len(np.unique(windows)) / len(windows) if len(windows) else 0.0
    return max(repeated, _repeated_sentences(corpus, every)), count


def window_hashes(tokens: npt.NDArray[np.int64], n: int = WINDOW) -> npt.NDArray[np.uint64]:
    """A hash of every window of n consecutive tokens."""
    count = max(len(tokens) - n + 1, 0)
    sums, back = _sums(tokens)
    return (sums[n : n + count] - sums[:count]) * back[:count]


def passage_hashes(tokens: npt.NDArray[np.int64], starts: npt.NDArray[np.int64],
                   ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """A hash of each passage: sum_k (t_k + 1) b^(k - start) modulo 2^64, b odd."""
    sums, back = _sums(tokens)
    return (sums[ends] - sums[starts]) * back[starts]


def _sums(tokens: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Prefix sums of (t_k + 1) b^k, and the powers of 1/b that shift the sum of a passage to b^0 (b is odd, so
    invertible modulo 2^64)."""
    powers, back = _powers(1 << len(tokens).bit_length())
    sums = np.zeros(len(tokens) + 1, np.uint64)
    np.cumsum((tokens.astype(np.uint64) + np.uint64(1)) * powers[: len(tokens)], out=sums[1:])
    return sums, back


@lru_cache(maxsize=2)
def _powers(count: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The first `count` powers of b and of its inverse."""
    factors = np.full((2, count), np.array([[_BASE], [_INVERSE]]))
    factors[:, 0] = 1
    powers, back = np.cumprod(factors, axis=1)
    return powers, back


def _sampled(hashes: npt.NDArray[np.uint64], every: int) -> npt.NDArray[np.bool_]:
    """About one in `every`, by the upper bits: the lowest bits of a hash depend only on those of the tokens."""
    sampled: npt.NDArray[np.bool_] = (hashes >> np.uint64(32)) % np.uint64(every) == 0
    return sampled


def _repeated_sentences(corpus: Corpus, every: int) -> float:
    borders = np.asarray(corpus.sentences).astype(np.int64)
    hashes, lengths, first = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], 0
    while first < len(borders) - 1:
        last = max(first + 1, int(np.searchsorted(borders, borders[first] + _STRETCH, side="right")) - 1)
        some = borders[first : last + 1]
        starts, ends = some[:-1] - some[0], some[1:] - some[0]
        long = ends - starts >= LEAST_SENTENCE
        found = passage_hashes(corpus.tokens[some[0] : some[-1]].astype(np.int64), starts[long], ends[long])
        sampled = _sampled(found, every)
        hashes.append(found[sampled])
        lengths.append((ends - starts)[long][sampled])
        first = last
    length = np.concatenate(lengths)
    _, where = np.unique(np.concatenate(hashes), return_index=True)
    return 1 - float(length[where].sum() / length.sum()) if len(length) else 0.0

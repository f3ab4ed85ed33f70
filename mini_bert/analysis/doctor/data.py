"""Diseases of the text that a run is trained on."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...errors import CorpusError
from ...text.corpora.corpus import Corpus
from .symptoms import Case, Finding, Sure, disease

WINDOW = 32                   # tokens in a row; by chance they do not occur twice
LEAST_SENTENCE = 8            # tokens; shorter ones repeat in any text
MOST_TOKENS = 2_000_000       # places compared, of about as many tokens; of a larger corpus a part, by content
DUPLICATE = 0.3               # of the text; Wikipedia and books have a thousandth, documentation a tenth
_STRETCH = 1 << 17
_BASE = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))


@disease("duplicate data", 30, waits=False)
def duplicate_data(case: Case) -> Finding | None:
    """Much of the text occurs again and again, and is learned by heart instead of from."""
    corpus = case.run.corpus
    share, count = repeated_share(corpus)
    case.measured["repeated_text"] = share
    if share < DUPLICATE:
        return None
    return Finding("duplicate data", Sure.CERTAIN,
                   f"About {share:.0%} of {count:,} tokens stand in passages that have occurred before.",
                   {"repeated_share": share, "tokens": float(count),
                    "duplicate_paragraphs_left_out": float(corpus.manifest.duplicate_paragraphs)},
                   "Prepare the corpus again with deduplication, which is the default of mini-bert data prepare.")


def repeated_share(corpus: Corpus) -> tuple[float, int]:
    """The share of the training text that is a repetition, and how many tokens it has.

    The larger of two: places where a run of WINDOW tokens begins that has been seen, and tokens in whole sentences
    that have been seen, for texts whose documents are short and shuffled. Of a large text some passages are compared,
    chosen by their content, so that with a passage all its repetitions are chosen wherever they stand.
    """
    every = -(-corpus.manifest.tokens // MOST_TOKENS)
    hashes, count = [np.empty(0, np.uint64)], 0
    for tokens in corpus.token_chunks("train", _STRETCH):
        if int(tokens.max()) >= corpus.manifest.vocab_size:
            raise CorpusError(f"{corpus.directory} is damaged: it has ids beyond its vocabulary. Prepare it again.")
        found = window_hashes(tokens)
        hashes.append(found[_chosen(found, every)])
        count += len(tokens)
    if not count:
        raise CorpusError(f"{corpus.directory} has no text to train on.")
    windows = np.concatenate(hashes)
    again = 1 - len(np.unique(windows)) / len(windows) if len(windows) else 0.0
    return max(again, _repeated_sentences(corpus, every)), count


def window_hashes(tokens: npt.NDArray[np.int64], n: int = WINDOW) -> npt.NDArray[np.uint64]:
    """A hash of each n tokens in a row."""
    count = max(len(tokens) - n + 1, 0)
    sums, back = _sums(tokens)
    return (sums[n : n + count] - sums[:count]) * back[:count]


def passage_hashes(tokens: npt.NDArray[np.int64], starts: npt.NDArray[np.int64],
                   ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """A hash of each passage: sum_k (t_k + 1) b^(k - start) modulo 2^64, b odd."""
    sums, back = _sums(tokens)
    return (sums[ends] - sums[starts]) * back[starts]


def _sums(tokens: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Sums from the first token to each, which give that of any passage by one subtraction, and what brings it back to
    b^0: powers of the inverse of b, which an odd number has."""
    powers, back = _powers(1 << len(tokens).bit_length())
    sums = np.zeros(len(tokens) + 1, np.uint64)
    np.cumsum((tokens.astype(np.uint64) + np.uint64(1)) * powers[: len(tokens)], out=sums[1:])
    return sums, back


@lru_cache(maxsize=2)
def _powers(count: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Of b and of its inverse, from the 0th on."""
    factors = np.full((2, count), np.array([[_BASE], [_INVERSE]]))
    factors[:, 0] = 1
    powers, back = np.cumprod(factors, axis=1)
    return powers, back


def _chosen(hashes: npt.NDArray[np.uint64], every: int) -> npt.NDArray[np.bool_]:
    """About one of so many; by the upper half, as the lowest bits of a hash follow those of the tokens."""
    chosen: npt.NDArray[np.bool_] = (hashes >> np.uint64(32)) % np.uint64(every) == 0
    return chosen


def _repeated_sentences(corpus: Corpus, every: int) -> float:
    borders = np.asarray(corpus.sentences).astype(np.int64)
    hashes, lengths, first = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], 0
    while first < len(borders) - 1:
        last = max(first + 1, int(np.searchsorted(borders, borders[first] + _STRETCH, side="right")) - 1)
        some = borders[first : last + 1]
        starts, ends = some[:-1] - some[0], some[1:] - some[0]
        long = ends - starts >= LEAST_SENTENCE
        found = passage_hashes(corpus.tokens[some[0] : some[-1]].astype(np.int64), starts[long], ends[long])
        chosen = _chosen(found, every)
        hashes.append(found[chosen])
        lengths.append((ends - starts)[long][chosen])
        corpus.release()
        first = last
    length = np.concatenate(lengths)
    _, where = np.unique(np.concatenate(hashes), return_index=True)
    return 1 - float(length[where].sum() / length.sum()) if len(length) else 0.0

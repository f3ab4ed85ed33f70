"""How far representations move when a text is changed a little.

Each text is perturbed in a named way, and its vectors before and after are compared by their cosine in every layer:
of the sentence, the mean over its tokens; and of the tokens that are in both texts, which the change has not touched
and which move only because their context does. [CLS], [SEP] and padding are left out of both.

A cosine by itself means nothing: in many models any two sentences have a high one. So beside it stands the
baseline, the cosine of unrelated sentences; of tokens, that of unrelated tokens and that of the same token in
another text. `kept` puts them together: 1 if nothing has moved, 0 if the text might as well be another one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array
from ...core.model import MiniBERT
from ...errors import InputError
from ...inference.inputs import Progress, batches_by_length, pad_sequences, require_vocabulary
from ...randomness import generator
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from ..metrics import fields_of
from ..statistics import Interval, over_seeds
from .geometry import layer_states, unit_rows

Perturbation = Callable[[str, np.random.Generator], str | None]       # None: this text cannot be changed so
_WORD = re.compile(r"[^\W\d_]+")


def typo(text: str, rng: np.random.Generator) -> str | None:
    """Two neighbouring letters inside a word change places."""
    words = [match for match in _WORD.finditer(text) if _swaps(match[0])]
    if not words:
        return None
    word = words[int(rng.integers(len(words)))]
    place = word.start() + int(rng.choice(_swaps(word[0])))
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :]


def _swaps(word: str) -> list[int]:
    """Where two neighbours differ, the first letter left alone: people seldom mistype that one."""
    return [i for i in range(1, len(word) - 1) if word[i].lower() != word[i + 1].lower()]


def dropped_word(text: str, rng: np.random.Generator) -> str | None:
    """One word is left out."""
    words = text.split()
    if len(words) < 2:
        return None
    del words[int(rng.integers(len(words)))]
    return " ".join(words)


def swapped_words(text: str, rng: np.random.Generator) -> str | None:
    """Two neighbouring words change places."""
    words = text.split()
    places = [i for i in range(len(words) - 1) if words[i].lower() != words[i + 1].lower()]
    if not places:
        return None
    i = int(rng.choice(places))
    words[i], words[i + 1] = words[i + 1], words[i]
    return " ".join(words)


def changed_case(text: str, rng: np.random.Generator) -> str | None:
    """The first letter of a word becomes a capital, or is one no longer; a model that is not cased cannot see it."""
    words = [match for match in _WORD.finditer(text) if match[0][0].swapcase() != match[0][0]]
    if not words:
        return None
    place = words[int(rng.integers(len(words)))].start()
    return text[:place] + text[place].swapcase() + text[place + 1 :]


def doubled_space(text: str, rng: np.random.Generator) -> str | None:
    """A space is written twice; a tokenizer that splits at white space does not see it."""
    return _doubled(text, " ", rng)


def doubled_punctuation(text: str, rng: np.random.Generator) -> str | None:
    """A comma, a full stop or the like is written twice."""
    return _doubled(text, ".,;:!?", rng)


def _doubled(text: str, characters: str, rng: np.random.Generator) -> str | None:
    places = [i for i, character in enumerate(text) if character in characters]
    if not places:
        return None
    place = int(rng.choice(places))
    return text[: place + 1] + text[place:]


PERTURBATIONS: dict[str, Perturbation] = {
    "typo": typo, "dropped word": dropped_word, "swapped words": swapped_words, "changed case": changed_case,
    "doubled space": doubled_space, "doubled punctuation": doubled_punctuation}


# -------------------------------------------------------------------- the report


@dataclass(frozen=True)
class Baseline:
    """Cosines in one layer of what has nothing to do with each other."""

    sentences: float          # of all pairs of texts
    tokens: float             # of all pairs of tokens in different texts
    same_token: float | None  # of occurrences of one token in different texts; None where no token is in two of them


@dataclass(frozen=True)
class Movement:
    """Cosines in one layer before and after, the mean over the texts with an interval over the seeds."""

    sentence: Interval
    token: Interval | None    # None where no token is in both texts
    kept: float | None        # (cosine - baseline) / (1 - baseline), of sentences; None where all sentences are alike
    token_kept: float | None  # the same of tokens, against the same token in another text


@dataclass(frozen=True)
class Perturbed:
    """One perturbation. Counts are over all texts and seeds; cosines are of the changed ones alone."""

    changed: int
    unseen: int               # its ids are the same: the tokenizer drops the difference or cuts it off; or none is left
    impossible: int           # the text has no place for the change
    layers: dict[str, Movement]   # empty where nothing changed


@dataclass(frozen=True)
class StabilityReport:
    texts: int
    duplicates: int           # texts that were left out: equal texts are not unrelated
    empty: int                # texts that were left out: they have no tokens
    cut: int                  # texts longer than the model takes
    seeds: list[int]
    baseline: dict[str, Baseline]
    perturbations: dict[str, Perturbed]

    def to_dict(self) -> dict[str, Any]:
        return fields_of(self)


# -------------------------------------------------------------------- measuring


def measure_representation_stability(model: MiniBERT, tokenizer: WordPieceTokenizer, texts: Sequence[str],
                                     perturbations: Sequence[str] | Mapping[str, Perturbation] | None = None, *,
                                     seeds: Sequence[int] = (0, 1, 2), batch_size: int = 32,
                                     progress: Progress | None = None) -> StabilityReport:
    """Cosines by layer under each perturbation: some of PERTURBATIONS by name, all by default, or functions by name.

    A perturbation takes (text, generator) and returns the changed text, or None where the text has no place for it.
    What it does to a text depends on the seed, its name and the text's number.
    """
    if isinstance(texts, str):
        raise InputError("Stability takes several texts; put a single one into a list.")
    require_vocabulary(model, tokenizer)
    chosen = _chosen(perturbations)
    if not seeds:
        raise InputError("Stability needs at least one seed.")
    distinct = list(dict.fromkeys(texts))
    encoded = {text: tokenizer.encode(text) for text in distinct}
    known = [text for text in distinct if tokenizer.vocabulary.ordinary[encoded[text]].any()]
    if len(known) < 2:
        raise InputError(f"Stability needs at least two different texts, for the baseline; there are {len(known)}.")
    T = model.config.max_seq_length
    unrelated = _Unrelated(np.unique(np.concatenate([encoded[text][:T] for text in known])), model.config.hidden_size)
    found = {name: _Found(len(seeds)) for name in chosen}
    done = 0
    for numbers in batches_by_length([encoded[text] for text in known], batch_size):
        group = numbers.tolist()
        before = _Vectors(model, tokenizer, [known[i] for i in group])
        unrelated.add(before)
        for name, perturb in chosen.items():
            for run, seed in enumerate(seeds):
                changed = [perturb(known[i], generator(seed, "stability", name, i)) for i in group]
                found[name].add(run, before, changed, model, tokenizer)
        done += len(group)
        if progress is not None:
            progress(done)
    baseline = unrelated.baseline()
    return StabilityReport(len(known), len(texts) - len(distinct), len(distinct) - len(known),
                           sum(len(encoded[text]) > T for text in known), [int(seed) for seed in seeds], baseline,
                           {name: of.result(baseline) for name, of in found.items()})


def _chosen(perturbations: Sequence[str] | Mapping[str, Perturbation] | None) -> dict[str, Perturbation]:
    if isinstance(perturbations, Mapping):
        return dict(perturbations)
    names = list(PERTURBATIONS) if perturbations is None else \
        [perturbations] if isinstance(perturbations, str) else list(perturbations)
    for name in names:
        if name not in PERTURBATIONS:
            raise InputError(f"There is no perturbation {name!r}; choose some of {', '.join(PERTURBATIONS)}.")
    return {name: PERTURBATIONS[name] for name in names}


class _Vectors:
    """By layer, the unit vectors of the ordinary tokens (N, H) and of the sentences (n, H)."""

    def __init__(self, model: MiniBERT, tokenizer: WordPieceTokenizer, texts: Sequence[str]):
        self.rows = [tokenizer.encode(text, max_length=model.config.max_seq_length) for text in texts]
        ids, mask = pad_sequences(self.rows, tokenizer.vocabulary.pad)
        counted = mask & tokenizer.vocabulary.ordinary[ids]
        _, cache = model.encode(ids, mask, recompute=True)            # the layers' outputs alone
        self.ids, self.owner = ids[counted], np.nonzero(counted)[0]
        self.tokens: dict[str, Array] = {}
        self.sentences: dict[str, Array] = {}
        for layer, states in layer_states(cache).items():
            self.tokens[layer] = unit_rows(states[counted])
            self.sentences[layer] = unit_rows(np.einsum("bth,bt->bh", states, counted.astype(states.dtype)))
        self.at = np.full(ids.shape, -1)                              # the row of each token
        self.at[counted] = np.arange(len(self.ids))


class _Found:
    """The cosines under one perturbation, as they come."""

    def __init__(self, runs: int):
        self.sentence: list[dict[str, list[npt.NDArray[Any]]]] = [{} for _ in range(runs)]
        self.token: list[dict[str, list[npt.NDArray[Any]]]] = [{} for _ in range(runs)]
        self.changed = self.unseen = self.impossible = 0

    def add(self, run: int, before: _Vectors, changed: list[str | None], model: MiniBERT,
            tokenizer: WordPieceTokenizer) -> None:
        possible = [(i, text) for i, text in enumerate(changed) if text is not None]
        self.impossible += len(changed) - len(possible)
        pairs = []
        for i, text in possible:
            ids = tokenizer.encode(text, max_length=model.config.max_seq_length)
            if ids != before.rows[i] and tokenizer.vocabulary.ordinary[ids].any():
                pairs.append((i, text))
        self.unseen += len(possible) - len(pairs)
        self.changed += len(pairs)
        if not pairs:
            return
        numbers = [i for i, _ in pairs]
        after = _Vectors(model, tokenizer, [text for _, text in pairs])
        old, new = _in_both(before, after, numbers)
        for layer in after.tokens:
            self.sentence[run].setdefault(layer, []).append(
                np.einsum("nh,nh->n", before.sentences[layer][numbers], after.sentences[layer]))
            self.token[run].setdefault(layer, []).append(
                np.einsum("nh,nh->n", before.tokens[layer][old], after.tokens[layer][new]))

    def result(self, baseline: dict[str, Baseline]) -> Perturbed:
        layers = {}
        for layer, base in baseline.items() if self.changed else ():
            sentence, token = (over_seeds(means) if (means := _means(runs, layer)) else None
                               for runs in (self.sentence, self.token))
            assert sentence is not None
            layers[layer] = Movement(sentence, token, kept(sentence.mean, base.sentences),
                                     None if token is None or base.same_token is None else
                                     kept(token.mean, base.same_token))
        return Perturbed(self.changed, self.unseen, self.impossible, layers)


def _means(runs: list[dict[str, list[npt.NDArray[Any]]]], layer: str) -> list[float]:
    """The mean of each seed that has cosines."""
    joined = [np.concatenate(run[layer]) for run in runs if layer in run]
    return [float(cosines.mean(dtype=np.float64)) for cosines in joined if len(cosines)]


def kept(cosine: float, baseline: float) -> float | None:
    """How much of a vector is left; None where all vectors are alike, and so nothing can move."""
    return (cosine - baseline) / (1 - baseline) if 1 - baseline > 1e-6 else None      # rounding is no difference


def _in_both(before: _Vectors, after: _Vectors, numbers: list[int]) -> tuple[list[int], list[int]]:
    """The rows of tokens that stand in both texts, in the same order."""
    old: list[int] = []
    new: list[int] = []
    for j, i in enumerate(numbers):
        blocks = SequenceMatcher(None, before.rows[i], after.rows[j], autojunk=False).get_matching_blocks()
        for a, b, size in blocks:
            old += before.at[i, a : a + size].tolist()
            new += after.at[j, b : b + size].tolist()
    ordinary = [k for k, row in enumerate(old) if row >= 0]
    return [old[k] for k in ordinary], [new[k] for k in ordinary]


class _Pairs:
    """The mean cosine of vectors of one group in different texts, over all such pairs.

    Within a group, |sum of all|^2 less |sum of a text|^2 for each text is the sum over pairs in different texts.
    """

    def __init__(self, groups: int, size: int):
        self.sums = np.zeros((groups, size))
        self.own, self.counts, self.own_pairs = np.zeros((3, groups))

    def add(self, units: Array, group: npt.NDArray[np.int64], text: npt.NDArray[np.int64]) -> None:
        """Vectors (N, H), the group (N,) and the text (N,) of each; all those of a text at once."""
        order = np.lexsort((text, group))
        starts = np.flatnonzero(np.r_[True, (np.diff(group[order]) != 0) | (np.diff(text[order]) != 0)])
        sums = np.add.reduceat(units[order].astype(np.float64), starts, axis=0)
        sizes, of = np.diff(np.r_[starts, len(order)]), group[order][starts]
        np.add.at(self.sums, of, sums)
        for total, values in ((self.own, np.einsum("nh,nh->n", sums, sums)), (self.counts, sizes),
                              (self.own_pairs, sizes**2)):
            total += np.bincount(of, values, len(total))

    def mean(self) -> float | None:
        """Over the groups with such pairs, each vector of theirs counting the same."""
        pairs = self.counts**2 - self.own_pairs
        some = pairs > 0
        if not some.any():
            return None
        cosines = (np.einsum("gh,gh->g", self.sums, self.sums) - self.own)[some] / pairs[some]
        return float(np.average(cosines, weights=self.counts[some]))


class _Unrelated:
    """By layer, the pairs of sentences, of tokens, and of occurrences of one token."""

    def __init__(self, vocabulary: npt.NDArray[np.int64], size: int):
        self.vocabulary, self.size = vocabulary, size
        self.layers: dict[str, tuple[_Pairs, _Pairs, _Pairs]] = {}

    def add(self, vectors: _Vectors) -> None:
        group = np.searchsorted(self.vocabulary, vectors.ids)
        texts = np.arange(len(vectors.rows))
        for layer, units in vectors.tokens.items():
            if layer not in self.layers:
                self.layers[layer] = (_Pairs(1, self.size), _Pairs(1, self.size),
                                      _Pairs(len(self.vocabulary), self.size))
            sentences, tokens, same = self.layers[layer]
            sentences.add(vectors.sentences[layer], np.zeros_like(texts), texts)
            tokens.add(units, np.zeros_like(group), vectors.owner)
            same.add(units, group, vectors.owner)

    def baseline(self) -> dict[str, Baseline]:
        return {layer: Baseline(sentences.mean() or 0.0, tokens.mean() or 0.0, same.mean())
                for layer, (sentences, tokens, same) in self.layers.items()}

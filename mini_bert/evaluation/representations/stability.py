"""How far representations move when a text is changed slightly.

Each text is perturbed, and its vectors before and after are compared by cosine in every layer: the sentence vector,
which is the mean over tokens, and the vectors of the tokens that occur in both texts, which only their context can
move. [CLS], [SEP] and padding are excluded.

A cosine alone says little, because in many models any two sentences have a high cosine. The baseline is therefore the
cosine of unrelated sentences; for tokens, that of unrelated tokens and that of the same token in another text. `kept`
combines both: 1 if nothing moved, 0 if the vector is as different as that of another text.
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
from ...inference.inputs import Progress, batches_by_length, pad_sequences
from ...randomness import generator
from ...text.tokenizer import Tokenizer
from ..built_in import SENTENCES
from ..model_tokenizer import model_tokenizer
from ..result import Result
from ..statistics import Interval, over_seeds
from .geometry import layer_states, unit_rows

Perturbation = Callable[[str, np.random.Generator], str | None]       # None: not applicable to this text
Perturbations = Sequence[str] | Mapping[str, Perturbation]
_WORD = re.compile(r"[^\W\d_]+")


def typo(text: str, rng: np.random.Generator) -> str | None:
    """Swap two neighbouring letters inside a word."""
    words = [match for match in _WORD.finditer(text) if _swaps(match[0])]
    if not words:
        return None
    word = words[int(rng.integers(len(words)))]
    place = word.start() + int(rng.choice(_swaps(word[0])))
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :]


def _swaps(word: str) -> list[int]:
    """Indices of letters that differ from the next; not the first letter, which people seldom mistype."""
    return [i for i in range(1, len(word) - 1) if word[i].lower() != word[i + 1].lower()]


def dropped_word(text: str, rng: np.random.Generator) -> str | None:
    """Drop a word."""
    words = text.split()
    if len(words) < 2:
        return None
    del words[int(rng.integers(len(words)))]
    return " ".join(words)


def swapped_words(text: str, rng: np.random.Generator) -> str | None:
    """Swap two neighbouring words."""
    words = text.split()
    places = [i for i in range(len(words) - 1) if words[i].lower() != words[i + 1].lower()]
    if not places:
        return None
    i = int(rng.choice(places))
    words[i], words[i + 1] = words[i + 1], words[i]
    return " ".join(words)


def changed_case(text: str, rng: np.random.Generator) -> str | None:
    """Change the case of the first letter of a word; invisible to an uncased model."""
    words = [match for match in _WORD.finditer(text) if match[0][0].swapcase() != match[0][0]]
    if not words:
        return None
    place = words[int(rng.integers(len(words)))].start()
    return text[:place] + text[place].swapcase() + text[place + 1 :]


def doubled_space(text: str, rng: np.random.Generator) -> str | None:
    """Double a space; invisible to a tokenizer that splits at white space."""
    return _doubled(text, " ", rng)


def doubled_punctuation(text: str, rng: np.random.Generator) -> str | None:
    """Double a punctuation mark."""
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
class CosineBaseline:
    """Cosines of unrelated vectors in one layer."""

    sentences: float          # mean over all pairs of texts
    tokens: float             # mean over all pairs of tokens in different texts
    same_token: float | None  # the same token in different texts; None if no token occurs in two texts


@dataclass(frozen=True)
class LayerStability:
    """Cosines between before and after in one layer: means over the texts, with intervals over the seeds."""

    sentence: Interval
    token: Interval | None    # None if no token occurs in both texts
    kept: float | None        # (cosine - baseline) / (1 - baseline) of sentences; None if all sentences have cosine 1
    token_kept: float | None  # the same for tokens, against the same token in another text


@dataclass(frozen=True)
class PerturbationResult:
    """The result of one perturbation. Counts are over all texts and seeds; cosines use only the changed texts."""

    changed: int
    unseen: int               # the change did not alter the ids, or left none
    impossible: int           # not applicable to the text
    layers: dict[str, LayerStability]   # empty if nothing changed


@dataclass(frozen=True)
class StabilityReport(Result):
    texts: int
    duplicates: int           # texts left out, as equal texts are not unrelated
    empty: int                # texts left out because they have no tokens
    cut: int                  # texts longer than the model's maximum
    seeds: list[int]
    baseline: dict[str, CosineBaseline]
    perturbations: dict[str, PerturbationResult]


# -------------------------------------------------------------------- measuring


def measure_representation_stability(model: MiniBERT, tokenizer: Tokenizer | Perturbations | None = None,
                                     texts: Sequence[str] = SENTENCES, perturbations: Perturbations | None = None, *,
                                     seeds: Sequence[int] = (0, 1, 2), batch_size: int = 32,
                                     progress: Progress | None = None) -> StabilityReport:
    """Cosines by layer under each perturbation: names from PERTURBATIONS, all by default, or functions by name.

    A perturbation takes (text, generator) and returns the changed text, or None if it does not apply. Its random draws
    depend on the seed, its name and the index of the text. The tokenizer is by default that of the loaded model, and
    the texts are a few built-in sentences; `measure_representation_stability(model, perturbations)` works too.
    """
    if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
        tokenizer, perturbations = None, tokenizer
    if isinstance(texts, str):
        raise InputError("Stability takes a list of texts; put a single text into a list.")
    tokenizer = model_tokenizer(model, tokenizer)
    chosen = _chosen(perturbations)
    if not seeds:
        raise InputError("Stability needs at least one seed.")
    distinct = list(dict.fromkeys(texts))
    encoded = {text: tokenizer.encode(text) for text in distinct}
    known = [text for text in distinct if tokenizer.vocabulary.ordinary[encoded[text]].any()]
    if len(known) < 2:
        raise InputError(f"Stability needs at least two different texts for the baseline; there are {len(known)}.")
    T = model.config.max_seq_length
    unrelated = _BaselineCollector(np.unique(np.concatenate([encoded[text][:T] for text in known])),
                                   model.config.hidden_size)
    found = {name: _CosineCollector(len(seeds)) for name in chosen}
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


def _chosen(perturbations: Perturbations | None) -> dict[str, Perturbation]:
    if isinstance(perturbations, Mapping):
        return dict(perturbations)
    names = list(PERTURBATIONS) if perturbations is None else \
        [perturbations] if isinstance(perturbations, str) else list(perturbations)
    for name in names:
        if name not in PERTURBATIONS:
            raise InputError(f"There is no perturbation {name!r}; choose some of {', '.join(PERTURBATIONS)}.")
    return {name: PERTURBATIONS[name] for name in names}


class _Vectors:
    """The unit vectors of the ordinary tokens (N, H) and of the sentences (n, H), by layer."""

    def __init__(self, model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str]):
        self.rows = [tokenizer.encode(text, max_length=model.config.max_seq_length) for text in texts]
        ids, mask = pad_sequences(self.rows, tokenizer.vocabulary.pad)
        counted = mask & tokenizer.vocabulary.ordinary[ids]
        _, cache = model.encode(ids, mask, forward_only=True)         # keeps only the outputs of the layers
        self.ids, self.owner = ids[counted], np.nonzero(counted)[0]
        self.tokens: dict[str, Array] = {}
        self.sentences: dict[str, Array] = {}
        for layer, states in layer_states(cache).items():
            self.tokens[layer] = unit_rows(states[counted])
            self.sentences[layer] = unit_rows(np.einsum("bth,bt->bh", states, counted.astype(states.dtype)))
        self.at = np.full(ids.shape, -1)                              # the row of each token in `tokens`
        self.at[counted] = np.arange(len(self.ids))


class _CosineCollector:
    """Collects the cosines under one perturbation."""

    def __init__(self, runs: int):
        self.sentence: list[dict[str, list[npt.NDArray[Any]]]] = [{} for _ in range(runs)]
        self.token: list[dict[str, list[npt.NDArray[Any]]]] = [{} for _ in range(runs)]
        self.changed = self.unseen = self.impossible = 0

    def add(self, run: int, before: _Vectors, changed: list[str | None], model: MiniBERT,
            tokenizer: Tokenizer) -> None:
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

    def result(self, baseline: dict[str, CosineBaseline]) -> PerturbationResult:
        layers = {}
        for layer, base in baseline.items() if self.changed else ():
            sentence, token = (over_seeds(means) if (means := _means(runs, layer)) else None
                               for runs in (self.sentence, self.token))
            assert sentence is not None
            layers[layer] = LayerStability(sentence, token, kept(sentence.mean, base.sentences),
                                           None if token is None or base.same_token is None else
                                           kept(token.mean, base.same_token))
        return PerturbationResult(self.changed, self.unseen, self.impossible, layers)


def _means(runs: list[dict[str, list[npt.NDArray[Any]]]], layer: str) -> list[float]:
    """The mean of each seed that has any cosines."""
    joined = [np.concatenate(run[layer]) for run in runs if layer in run]
    return [float(cosines.mean(dtype=np.float64)) for cosines in joined if len(cosines)]


def kept(cosine: float, baseline: float) -> float | None:
    """The share of a vector that is retained; None if the baseline is 1, so that nothing could move."""
    return (cosine - baseline) / (1 - baseline) if 1 - baseline > 1e-6 else None      # less is rounding


def _in_both(before: _Vectors, after: _Vectors, numbers: list[int]) -> tuple[list[int], list[int]]:
    """The rows, before and after, of the tokens that occur in both texts in the same order."""
    old: list[int] = []
    new: list[int] = []
    for j, i in enumerate(numbers):
        blocks = SequenceMatcher(None, before.rows[i], after.rows[j], autojunk=False).get_matching_blocks()
        for a, b, size in blocks:
            old += before.at[i, a : a + size].tolist()
            new += after.at[j, b : b + size].tolist()
    ordinary = [k for k, row in enumerate(old) if row >= 0]
    return [old[k] for k in ordinary], [new[k] for k in ordinary]


class _PairCosines:
    """The mean cosine over all pairs of vectors of the same group in different texts.

    Within a group, |sum of all|^2 minus |sum of a text|^2 for each text is the sum over pairs in different texts.
    """

    def __init__(self, groups: int, size: int):
        self.sums = np.zeros((groups, size))
        self.own, self.counts, self.own_pairs = np.zeros((3, groups))

    def add(self, units: Array, group: npt.NDArray[np.int64], text: npt.NDArray[np.int64]) -> None:
        """Add unit vectors (N, H) with the group (N,) and the text (N,) of each; a text must be added at once."""
        order = np.lexsort((text, group))
        starts = np.flatnonzero(np.r_[True, (np.diff(group[order]) != 0) | (np.diff(text[order]) != 0)])
        sums = np.add.reduceat(units[order].astype(np.float64), starts, axis=0)
        sizes, of = np.diff(np.r_[starts, len(order)]), group[order][starts]
        np.add.at(self.sums, of, sums)
        for total, values in ((self.own, np.einsum("nh,nh->n", sums, sums)), (self.counts, sizes),
                              (self.own_pairs, sizes**2)):
            total += np.bincount(of, values, len(total))

    def mean(self) -> float | None:
        """The mean over the groups that have such pairs, weighted by their number of vectors."""
        pairs = self.counts**2 - self.own_pairs
        some = pairs > 0
        if not some.any():
            return None
        cosines = (np.einsum("gh,gh->g", self.sums, self.sums) - self.own)[some] / pairs[some]
        return float(np.average(cosines, weights=self.counts[some]))


class _BaselineCollector:
    """Collects the cosines of the baseline by layer: of sentences, of tokens, and of the same token."""

    def __init__(self, vocabulary: npt.NDArray[np.int64], size: int):
        self.vocabulary, self.size = vocabulary, size
        self.layers: dict[str, tuple[_PairCosines, _PairCosines, _PairCosines]] = {}

    def add(self, vectors: _Vectors) -> None:
        group = np.searchsorted(self.vocabulary, vectors.ids)
        texts = np.arange(len(vectors.rows))
        for layer, units in vectors.tokens.items():
            if layer not in self.layers:
                self.layers[layer] = (_PairCosines(1, self.size), _PairCosines(1, self.size),
                                      _PairCosines(len(self.vocabulary), self.size))
            sentences, tokens, same = self.layers[layer]
            sentences.add(vectors.sentences[layer], np.zeros_like(texts), texts)
            tokens.add(units, np.zeros_like(group), vectors.owner)
            same.add(units, group, vectors.owner)

    def baseline(self) -> dict[str, CosineBaseline]:
        return {layer: CosineBaseline(sentences.mean() or 0.0, tokens.mean() or 0.0, same.mean())
                for layer, (sentences, tokens, same) in self.layers.items()}

"""Intrinsic evaluation: predictions, gradients and geometry on a sample of text, compared with random weights.

Predictions and gradients use the text with 15 % of its tokens masked; the geometry uses the unmasked text. [CLS],
[SEP] and padding are excluded from the geometry, and as queries from the attention entropy, because they would make all
sequences look similar. Everything is also measured for a model of the same config with random weights: what that
model reaches was not learned.

Sequences are computed in small batches, and at most MOST_TOKENS vectors per layer are kept, drawn by the seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.arrays import BoolArray
from ...core.cache import of_every_layer
from ...core.model import MiniBERT
from ...core.params import Parameters
from ...errors import InputError
from ...inference.inputs import batches_by_length, pad_sequences, require_vocabulary
from ...objectives.masked import MaskedLM
from ...objectives.objective import PassOptions
from ...randomness import generator
from ...text.batches import MLMBatch, MLMBatches
from ...text.corpora.corpus import Corpus
from ...text.masking import Masking
from ...text.tokenizer import Tokenizer
from ...training.update import BatchGradients
from ...workers import Workers, workers
from ..metrics import Calibration, Ranks, compute_calibration, compute_gradient_norm, compute_perplexity, target_ranks
from ..probabilities import Floats, target_losses, top_probability
from ..result import Result
from ..statistics import Interval, wilson_interval
from . import geometry

TOPS = (1, 5, 10)
MOST_TOKENS = 4096            # vectors per layer, well above the hidden size of small models
_LONGEST = 128                # default length of a sequence in tokens
_AT_A_TIME = 8                # sequences


@dataclass(frozen=True)
class MaskedFigures:
    """Metrics of masked tokens, and the gradient of their mean loss."""

    loss: float
    perplexity: float
    accuracy: dict[int, Interval]         # by number of guesses
    calibration: Calibration
    gradient_norm: float
    gradient_norm_by_part: dict[str, float]           # embeddings, layer_0, ..., and top (final LayerNorm and head)


@dataclass(frozen=True)
class ModelFigures:
    """All measurements of one model."""

    masked: MaskedFigures | None          # None for a model without an MLM head
    geometry: dict[str, geometry.RepresentationGeometry]       # by layer
    layer_similarity: list[list[float]]   # debiased linear CKA, in the order of `geometry`
    attention_entropy: list[list[float]]  # by layer and head, in nats
    attention_entropy_normalised: list[list[float]]
    effective_rank: dict[str, float]      # of the weight matrices of the layers


@dataclass(frozen=True)
class IntrinsicReport(Result):
    """The measurements of a model and of random weights, with the sample that both were measured on."""

    sequences: int
    left_out: int                         # sequences of the text that are not in the sample
    cut: int                              # texts of the sample that were longer than `length`
    empty: int                            # texts without tokens
    length: int
    tokens: int                           # without special tokens
    masked: int
    tokens_compared: int                  # used for the geometry
    seed: int
    most_frequent: dict[int, float]       # accuracy of always guessing the most frequent masked tokens of the sample
    model: ModelFigures
    random_init: ModelFigures


@dataclass(frozen=True)
class _Sample:
    batches: list[MLMBatch]
    left_out: int
    cut: int
    empty: int


def intrinsic(model: MiniBERT, tokenizer: Tokenizer, corpus_or_texts: Corpus | Sequence[str], *,
              seed: int = 0, threads: int = 0, max_sequences: int = 256, split: str = "heldout",
              length: int | None = None) -> IntrinsicReport:
    """Measure a model on a split of a prepared corpus or on texts; `max_sequences` are drawn by the seed.

    `length` is the maximum length of a sequence in tokens, including [CLS] and [SEP]; by default 128, or the model's
    maximum if that is less. The same seed draws the random weights.
    """
    require_vocabulary(model, tokenizer)
    T = min(model.config.max_seq_length, _LONGEST) if length is None else length
    if not 3 <= T <= model.config.max_seq_length:
        raise InputError(f"length must be between 3 and the model's {model.config.max_seq_length}, not {T}.")
    if max_sequences < 1:
        raise InputError(f"max_sequences must be at least 1, not {max_sequences}.")
    if isinstance(corpus_or_texts, str):
        raise InputError("intrinsic takes a Corpus or a list of texts; put a single text into a list.")
    if isinstance(corpus_or_texts, Corpus):
        corpus_or_texts.require_vocabulary(tokenizer)
        sample = _of_corpus(corpus_or_texts, split, T, max_sequences, seed)
    else:
        sample = _of_texts(tokenizer, corpus_or_texts, T, max_sequences, seed)
    ordinary = [tokenizer.vocabulary.ordinary[batch.target_ids] & batch.attention_mask for batch in sample.batches]
    tokens = sum(int(mask.sum()) for mask in ordinary)
    targets = np.concatenate([batch.target_ids[batch.mask_positions] for batch in sample.batches])
    if not len(targets) or tokens < 4:
        raise InputError(f"There are too few tokens to measure: {tokens}, of which {len(targets)} are masked.")
    kept = _drawn(ordinary, tokens, seed)
    frequent = np.sort(np.bincount(targets))[::-1]
    with workers(threads) as team:
        figures = [_measured(network, sample.batches, ordinary, kept, team) for network in
                   (model, MiniBERT(model.config, dtype=model.dtype, seed=seed))]
    return IntrinsicReport(
        sum(len(batch.input_ids) for batch in sample.batches), sample.left_out, sample.cut, sample.empty, T, tokens,
        len(targets), sum(int(mask.sum()) for mask in kept), int(seed),
        {top: float(frequent[:top].sum() / len(targets)) for top in TOPS}, figures[0], figures[1])


# -------------------------------------------------------------------- the sample


def _of_corpus(corpus: Corpus, split: str, T: int, most: int, seed: int) -> _Sample:
    batches = MLMBatches(corpus, split, max_seq_length=T, batch_size=_AT_A_TIME, seed=seed)
    wanted = min(most, len(batches.sequences))
    found = [batches[step] for step in range(-(-wanted // _AT_A_TIME))]
    last = wanted - _AT_A_TIME * (len(found) - 1)
    found[-1] = MLMBatch(*(None if field is None else field[:last] for field in found[-1]))  # type: ignore[arg-type]
    return _Sample(found, len(batches.sequences) - wanted, 0, 0)


def _of_texts(tokenizer: Tokenizer, texts: Sequence[str], T: int, most: int, seed: int) -> _Sample:
    vocabulary = tokenizer.vocabulary
    order = generator(seed, "intrinsic", "texts").permutation(len(texts)).tolist()
    rows: dict[int, list[int]] = {}
    looked_at = empty = cut = 0
    for number in order:
        if len(rows) == most:
            break
        looked_at += 1
        ids = tokenizer.encode(texts[number])
        if not vocabulary.ordinary[ids[:T]].any():
            empty += 1
            continue
        cut += len(ids) > T
        rows[number] = ids if len(ids) <= T else tokenizer.encode(texts[number], max_length=T)
    numbers = np.array(sorted(rows))
    batches = []
    for group in batches_by_length([rows[number] for number in numbers.tolist()], _AT_A_TIME):
        grid, mask = pad_sequences([rows[number] for number in numbers[group].tolist()], vocabulary.pad)
        masked, positions = Masking()(grid, vocabulary, seed=seed, epoch=0, sequences=numbers[group])
        batches.append(MLMBatch(masked, grid, positions, mask))
    if not batches:
        raise InputError("There is no text to measure the model on.")
    return _Sample(batches, len(texts) - looked_at, cut, empty)


def _drawn(ordinary: list[BoolArray], tokens: int, seed: int) -> list[BoolArray]:
    """Masks of the ordinary tokens whose vectors are kept."""
    if tokens <= MOST_TOKENS:
        return ordinary
    chosen = np.zeros(tokens, bool)
    chosen[generator(seed, "intrinsic", "tokens").choice(tokens, MOST_TOKENS, replace=False)] = True
    kept, start = [], 0
    for mask in ordinary:
        some = np.zeros_like(mask)
        some[mask] = chosen[start : start + int(mask.sum())]
        start += int(mask.sum())
        kept.append(some)
    return kept


# -------------------------------------------------------------------- one model


def _measured(model: MiniBERT, batches: list[MLMBatch], ordinary: list[BoolArray], kept: list[BoolArray],
              team: Workers) -> ModelFigures:
    masked = _masked(model, batches, team) if model.modules.predicts_words else None
    return _geometry(model, batches, ordinary, kept, team, masked)


def _masked(model: MiniBERT, batches: list[MLMBatch], team: Workers) -> MaskedFigures:
    def one(batch: MLMBatch) -> tuple[Ranks, Floats, Floats]:
        logits, _ = model.forward(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                                  positions=batch.mask_positions, forward_only=True)
        targets = batch.target_ids[batch.mask_positions]
        return target_ranks(logits, targets), top_probability(logits), target_losses(logits, targets)

    asked = [batch for batch in batches if batch.mask_positions.any()]
    results = team.map(one, asked)
    ranks = Ranks(*(np.concatenate(parts) for parts in zip(*(ranks for ranks, *_ in results), strict=True)))
    confidence, losses = (np.concatenate([result[i] for result in results]) for i in (1, 2))
    gradients = BatchGradients(MaskedLM(model, PassOptions(_AT_A_TIME, recompute=True)), team)
    loss = gradients.compute(joined_batches(asked))["masked"]
    gradients.gradients.flat[...] /= loss.count                      # the gradient of the mean
    mean = float(losses.mean())
    return MaskedFigures(mean, compute_perplexity(mean),
                         {top: wilson_interval(float(ranks.found(top).sum()), len(losses)) for top in TOPS},
                         compute_calibration(confidence, ranks.found(1)), compute_gradient_norm(gradients.gradients),
                         _by_part(gradients.gradients))


def joined_batches(batches: list[MLMBatch]) -> MLMBatch:
    """One batch of all sequences, padded to the longest."""
    width = max(batch.input_ids.shape[1] for batch in batches)

    def wide(name: str) -> Any:
        arrays = [getattr(batch, name) for batch in batches]
        if arrays[0] is None:
            return None
        return np.concatenate([np.pad(array, ((0, 0), (0, width - array.shape[1]))) for array in arrays])

    return MLMBatch(wide("input_ids"), wide("target_ids"), wide("mask_positions"), wide("attention_mask"),
                    wide("token_types"))


def _by_part(gradients: Parameters) -> dict[str, float]:
    """The gradient norm of each layer, of the embeddings, and of the parameters above the layers."""
    parts: dict[str, dict[str, Any]] = {}
    for name, value in gradients.items():
        group = gradients.specs[name].group
        parts.setdefault("top" if group == "head" else group, {})[name] = value
    return {part: compute_gradient_norm(arrays) for part, arrays in parts.items()}


def _geometry(model: MiniBERT, batches: list[MLMBatch], ordinary: list[BoolArray], kept: list[BoolArray],
              team: Workers, masked: MaskedFigures | None) -> ModelFigures:
    L = model.config.num_layers

    def one(number: int) -> tuple[dict[str, Any], dict[str, Floats], list[list[tuple[Floats, int]]]]:
        batch, counted = batches[number], ordinary[number]
        _, cache = model.encode(batch.target_ids, batch.attention_mask, token_types=batch.token_types)
        layers = of_every_layer(cache, "attention_weights", L)
        entropies = [[geometry.attention_entropy_sums(weights, batch.attention_mask, counted, normalised)
                      for weights in layers] for normalised in (False, True)]
        states = geometry.layer_states(cache)
        return ({layer: rows[kept[number]] for layer, rows in states.items()},
                {layer: geometry.sequence_diversity(rows, counted) for layer, rows in states.items()}, entropies)

    results = team.map(one, range(len(batches)))
    vectors = {layer: np.concatenate([rows[layer] for rows, *_ in results]) for layer in results[0][0]}
    diversity = {layer: np.concatenate([by[layer] for _, by, _ in results]) for layer in vectors}
    shapes = dict(zip(vectors, team.map(geometry.compute_representation_geometry, vectors.values()), strict=True))
    entropy, normalised = ([_mean([of[which][i] for *_, of in results]) for i in range(L)] for which in (0, 1))
    matrices = [name for name, spec in model.params.specs.items() if spec.layer is not None and len(spec.shape) == 2]
    ranks = team.map(lambda name: geometry.compute_effective_rank(model.params[name]), matrices)
    return ModelFigures(
        masked, {layer: replace(found, token_diversity=float(diversity[layer].mean())) if len(diversity[layer]) else
                 found for layer, found in shapes.items()},
        geometry.compute_layer_similarity(list(vectors.values())).tolist(), entropy, normalised,
        dict(zip(matrices, ranks, strict=True)))


def _mean(parts: list[tuple[Floats, int]]) -> list[float]:
    """The mean of each head, from the sums of the batches."""
    count = sum(n for _, n in parts)
    total = np.sum([sums for sums, _ in parts], axis=0)
    means: list[float] = (total / max(count, 1)).tolist()
    return means

"""Statistics of a run's newest checkpoint on a sample of its text, for the checks of model.py."""

from dataclasses import dataclass

import numpy as np

from ...core.model import MiniBERT
from ...evaluation.probabilities import probabilities, target_losses
from ...evaluation.representations.geometry import compute_anisotropy, compute_effective_dimensionality
from ...objectives.masked import masked_predictions
from ...text.batches import MLMBatch
from ...text.vocabulary import Vocabulary
from ...workers import Workers
from ..dynamics.dead_units import Tokens, dead_units
from ..dynamics.sensitivity import PredictionSpread, prediction_spread
from .run_record import RunRecord, Unavailable

_BATCHES = 8                  # held-out batches: about five hundred predictions, thousands of tokens


@dataclass(frozen=True)
class CheckpointStats:
    """Statistics of one checkpoint on a sample of text."""

    step: int
    tokens: int
    dead_share: list[float]               # per layer: feed-forward units that are off at every token
    mean_cosine: float                    # of the last hidden states of without_attention_mask, ordinary tokens
    dimensionality: float
    spread: PredictionSpread              # of the predictions at masked positions
    special_probability: float            # of [CLS] and [SEP] where they are masked
    special_mass: float                   # of all special tokens where ordinary tokens are masked


def sample_batches(run: RunRecord) -> list[MLMBatch]:
    """Some of the batches that the run is evaluated on."""
    batches = run.heldout
    if not batches:
        raise Unavailable("its corpus has no tokens to mask.")
    return batches[:: max(1, len(batches) // _BATCHES)][:_BATCHES]


def checkpoint_stats(run: RunRecord) -> CheckpointStats:
    """Statistics of the newest checkpoint."""
    _, model, state = run.checkpoint
    model.require_words()
    vocabulary = run.corpus.tokenizer.vocabulary
    batches = sample_batches(run)
    hidden, logits = [], []
    tokens = 0
    for batch in batches:
        states, _ = model.encode(batch.target_ids, batch.attention_mask, token_types=batch.token_types,
                                 forward_only=True)
        ordinary = batch.attention_mask & vocabulary.ordinary[batch.target_ids]
        hidden.append(states[ordinary])
        tokens += int(batch.attention_mask.sum())
        answers, _ = model.forward(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                                   positions=batch.mask_positions)
        logits.append(answers)
    rows, answers = np.concatenate(hidden), np.concatenate(logits)
    specials = np.flatnonzero(~vocabulary.ordinary)
    return CheckpointStats(
        int(state.get("step", 0)), tokens,
        dead_units(model, [Tokens(batch.target_ids, batch.attention_mask, batch.token_types) for batch in batches]),
        compute_anisotropy(rows).mean_cosine, compute_effective_dimensionality(rows), prediction_spread(answers),
        _special_probability(model, batches, vocabulary), float(probabilities(answers)[:, specials].sum(axis=1).mean()))


def _special_probability(model: MiniBERT, batches: list[MLMBatch], vocabulary: Vocabulary) -> float:
    """The mean probability of [CLS] and [SEP] where they are masked; training should never mask them."""
    found = []
    for batch in batches:
        places = batch.attention_mask & ((batch.target_ids == vocabulary.cls) | (batch.target_ids == vocabulary.sep))
        ids = np.where(places, vocabulary.mask, batch.target_ids)
        logits, _ = model.forward(ids, batch.attention_mask, token_types=batch.token_types, positions=places)
        targets = batch.target_ids[places]
        found.append(np.exp(-target_losses(logits, targets)))
    return float(np.concatenate(found).mean())


def padding_effect(model: MiniBERT, batches: list[MLMBatch], vocabulary: Vocabulary) -> float:
    """The largest change of a position's loss when the padding is filled with other tokens; it should be 0."""
    largest = 0.0
    for batch in batches[:2]:
        padded = _padded(batch, vocabulary)
        filler = np.where(padded.attention_mask, padded.input_ids, vocabulary.ordinary_ids[-1])
        if padded.mask_positions.any():
            before, after = (masked_predictions(model, [padded._replace(input_ids=ids)], Workers(1)).loss
                             for ids in (padded.input_ids, filler))
            largest = max(largest, float(np.abs(before - after).max()))
    return largest


def _padded(batch: MLMBatch, vocabulary: Vocabulary) -> MLMBatch:
    """The batch with every second sequence cut in half, so that there is padding."""
    real = batch.attention_mask.copy()
    real[::2, max(real.shape[1] // 2, 2) :] = False
    return MLMBatch(np.where(real, batch.input_ids, vocabulary.pad), np.where(real, batch.target_ids, vocabulary.pad),
                    batch.mask_positions & real, real, batch.token_types)


def without_attention_mask(batch: MLMBatch) -> MLMBatch:
    """The batch as seen by a model that attends to padding."""
    return batch._replace(attention_mask=np.ones_like(batch.attention_mask))

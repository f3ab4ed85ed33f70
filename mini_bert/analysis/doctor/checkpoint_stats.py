"""What a run's newest checkpoint does with a little of its text: the material of the checks that look at a model."""

from dataclasses import dataclass

import numpy as np

from ...core.model import MiniBERT
from ...evaluation.probabilities import Floats, probabilities, target_losses
from ...evaluation.representations.geometry import compute_anisotropy, compute_effective_dimensionality
from ...text.batches import MLMBatch
from ...text.vocabulary import Vocabulary
from ..dynamics.sensitivity import PredictionSpread, prediction_spread
from .run_record import NotThere, RunRecord

_BATCHES = 8                  # of the held-out text: about five hundred predictions, thousands of tokens
_QUIET = 1e-6                 # an activation below this part of the layer's largest is none; for ReLU it is 0 exactly


@dataclass(frozen=True)
class ModelView:
    """Figures of one checkpoint on a sample of text."""

    step: int
    tokens: int
    dead_share: list[float]               # by layer: FFN units that are silent at every token
    mean_cosine: float                    # of the last hidden states of unmasked, ordinary tokens
    dimensionality: float
    spread: PredictionSpread              # of the predictions at masked positions
    special_probability: float            # given to [CLS] at a masked beginning and to [SEP] at a masked end
    special_mass: float                   # given to special tokens at masked ordinary places


def sample(run: RunRecord) -> list[MLMBatch]:
    """A part of the batches that the run is evaluated on."""
    batches = run.heldout
    if not batches:
        raise NotThere("its corpus has nothing to mask.")
    return batches[:: max(1, len(batches) // _BATCHES)][:_BATCHES]


def view_of(run: RunRecord) -> ModelView:
    """Look at the newest checkpoint."""
    _, model, state = run.checkpoint
    vocabulary = run.corpus.tokenizer.vocabulary
    batches = sample(run)
    hidden, logits, loudest = [], [], [np.zeros(model.config.intermediate_size)] * model.config.num_layers
    tokens = 0
    for batch in batches:
        states, cache = model.encode(batch.target_ids, batch.attention_mask, token_types=batch.token_types)
        ordinary = batch.attention_mask & vocabulary.ordinary[batch.target_ids]
        hidden.append(states[ordinary])
        tokens += int(batch.attention_mask.sum())
        loudest = [np.maximum(before, np.abs(cache[f"ffn_activation_{i}"][batch.attention_mask]).max(axis=0))
                   for i, before in enumerate(loudest)]
        answers, _ = model.forward(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                                   positions=batch.mask_positions)
        logits.append(answers)
    rows, answers = np.concatenate(hidden), np.concatenate(logits)
    specials = np.flatnonzero(~vocabulary.ordinary)
    return ModelView(
        int(state.get("step", 0)), tokens, [_silent(layer) for layer in loudest],
        compute_anisotropy(rows).mean_cosine, compute_effective_dimensionality(rows), prediction_spread(answers),
        _special_probability(model, batches, vocabulary), float(probabilities(answers)[:, specials].sum(axis=1).mean()))


def _silent(loudest: Floats) -> float:
    """The share of units that no token wakes."""
    return float((loudest <= _QUIET * loudest.max(initial=0)).mean())


def _special_probability(model: MiniBERT, batches: list[MLMBatch], vocabulary: Vocabulary) -> float:
    """Hide [CLS] and [SEP], which no training should ever ask for: how sure is the model of them?"""
    sure = []
    for batch in batches:
        places = batch.attention_mask & ((batch.target_ids == vocabulary.cls) | (batch.target_ids == vocabulary.sep))
        ids = np.where(places, vocabulary.mask, batch.target_ids)
        logits, _ = model.forward(ids, batch.attention_mask, token_types=batch.token_types, positions=places)
        targets = batch.target_ids[places]
        sure.append(np.exp(-target_losses(logits, targets)))
    return float(np.concatenate(sure).mean())


def padding_matters(model: MiniBERT, batches: list[MLMBatch], vocabulary: Vocabulary) -> float:
    """How much the loss at a position changes when other tokens stand in the padding; it should not at all."""
    largest = 0.0
    for batch in batches[:2]:
        padded = _padded(batch, vocabulary)
        filler = np.where(padded.attention_mask, padded.input_ids, vocabulary.ordinary_ids[-1])
        if padded.mask_positions.any():
            before, after = (_losses(model, padded._replace(input_ids=ids))
                             for ids in (padded.input_ids, filler))
            largest = max(largest, float(np.abs(before - after).max()))
    return largest


def _losses(model: MiniBERT, batch: MLMBatch) -> Floats:
    """At each masked position."""
    logits, _ = model.forward(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                              positions=batch.mask_positions)
    return target_losses(logits, batch.target_ids[batch.mask_positions])


def _padded(batch: MLMBatch, vocabulary: Vocabulary) -> MLMBatch:
    """The batch with every second sequence cut to half, so that there is padding."""
    real = batch.attention_mask.copy()
    real[::2, max(real.shape[1] // 2, 2) :] = False
    return MLMBatch(np.where(real, batch.input_ids, vocabulary.pad), np.where(real, batch.target_ids, vocabulary.pad),
                    batch.mask_positions & real, real, batch.token_types)


def unmasked(batch: MLMBatch) -> MLMBatch:
    """The batch as a model sees it that takes padding for text."""
    return batch._replace(attention_mask=np.ones_like(batch.attention_mask))

"""How much the loss depends on each attention head.

Each head's context C_a is multiplied by a factor m_a, which is 1 in the model.

    by masking    loss(m_a = 0) - loss(m_a = 1)                        the head is removed
    by gradient   mean over texts of |d loss / d m_a|                  Michel et al. 2019
    derivative    d mean loss / d m_a = sum of dC_a * C_a              signed: below 0 the head helps

The loss is the mean over texts of each text's mean loss at its masked words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.arrays import Array
from ...core.cache import of_every_layer
from ...core.hooks import Hook, no_hook, recorder
from ...core.model import MiniBERT
from ...core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from ...evaluation.probabilities import Floats, target_losses
from ...evaluation.result import Result
from ...text.tokenizer import Tokenizer
from ..passes.sequences import Sentence, SentenceBatch, masked_sentence, sentence_batch
from ..passes.value_gradients import value_gradients

_AT_A_TIME = 16               # texts


@dataclass(frozen=True)
class HeadImportance(Result):
    """The importance of every head; arrays are (L, A)."""

    loss: float
    texts: int
    masked: int
    by_masking: Floats
    by_gradient: Floats
    derivative: Floats

    def ranking(self) -> list[tuple[int, int]]:
        """(layer, head), the most important by masking first."""
        A = self.by_masking.shape[1]
        return [divmod(int(i), A) for i in np.argsort(-self.by_masking.ravel(), kind="stable")]


def measure_head_importance(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str], *,
                            seed: int = 0) -> HeadImportance:
    """The importance of every head over texts, in which 15 % of the words are masked, chosen by the seed."""
    return head_importance(model, [masked_sentence(model, tokenizer, text, seed=seed) for text in texts])


def head_importance(model: MiniBERT, sentences: Sequence[Sentence]) -> HeadImportance:
    """By masking, which takes a forward pass for each head, and by gradient, which takes one pass back."""
    batches = _batches(sentences)
    loss, each = _loss(model, batches), _derivatives(model, batches)
    return HeadImportance(loss, len(sentences), sum(len(batch.targets) for batch in batches),
                          _by_masking(model, batches, loss), np.abs(each).mean(axis=0), each.mean(axis=0))


def head_importance_by_masking(model: MiniBERT, sentences: Sequence[Sentence]) -> Floats:
    """The rise of the loss (L, A) when a head's context is set to zero."""
    batches = _batches(sentences)
    return _by_masking(model, batches, _loss(model, batches))


def head_importance_by_gradient(model: MiniBERT, sentences: Sequence[Sentence]) -> Floats:
    """Michel et al.'s importance (L, A)."""
    importance: Floats = np.abs(_derivatives(model, _batches(sentences))).mean(axis=0)
    return importance


def scaled_heads(factors: Array) -> Hook:
    """A watch that multiplies each head's context by its factor (L, A)."""
    by_name = {f"context_{layer}": row for layer, row in enumerate(factors)}

    def hook(name: str, value: Array) -> Array:
        if name not in by_name:
            return value
        scaled: Array = value * by_name[name].astype(value.dtype)[:, None, None]
        return scaled

    return hook


def loss_with_heads(model: MiniBERT, sentences: Sequence[Sentence], factors: Array) -> float:
    """The loss when each head's context is multiplied by its factor (L, A)."""
    return _loss(model, _batches(sentences), scaled_heads(factors))


def _batches(sentences: Sequence[Sentence]) -> list[SentenceBatch]:
    return [sentence_batch(sentences[start : start + _AT_A_TIME])
            for start in range(0, max(1, len(sentences)), _AT_A_TIME)]


def _weights(batch: SentenceBatch) -> Floats:
    """The weight of each target in the mean of its text."""
    weights: Floats = 1 / np.bincount(batch.owners)[batch.owners]
    return weights


def _loss(model: MiniBERT, batches: Sequence[SentenceBatch], hook: Hook = no_hook) -> float:
    model.require_words()
    summed = 0.0
    for batch in batches:                         # recompute: nothing is kept for a way back
        logits, _ = model.forward(batch.ids, batch.mask, positions=batch.positions, hook=hook, forward_only=True)
        summed += float(_weights(batch) @ target_losses(logits, batch.targets))
    return summed / sum(len(batch.ids) for batch in batches)


def _by_masking(model: MiniBERT, batches: Sequence[SentenceBatch], loss: float) -> Floats:
    _contexts(model)
    rise = np.empty((model.config.num_layers, model.config.num_heads))
    for head in np.ndindex(rise.shape):
        factors = np.ones(rise.shape)
        factors[head] = 0
        rise[head] = _loss(model, batches, scaled_heads(factors)) - loss
    return rise


def _contexts(model: MiniBERT) -> list[str]:
    """The names of the heads' contexts in each layer; a model without attention is refused."""
    names = {step.name: step.name for step in model.modules.steps()}
    return of_every_layer(names, "context", model.config.num_layers)


def _derivatives(model: MiniBERT, batches: Sequence[SentenceBatch]) -> Floats:
    """The derivatives of each text's loss (texts, L, A)."""
    return np.concatenate([_derivatives_of_batch(model, batch) for batch in batches])


def _derivatives_of_batch(model: MiniBERT, batch: SentenceBatch) -> Floats:
    contexts: dict[str, Array] = {}
    names = _contexts(model)
    logits, cache = model.forward(batch.ids, batch.mask, positions=batch.positions,
                                  hook=recorder(contexts, np.ndarray.copy, names))
    _, loss_cache = cross_entropy_forward(logits, batch.targets)
    dlogits = cross_entropy_backward(1.0, loss_cache)
    dlogits *= _weights(batch).astype(dlogits.dtype)[:, None]
    found = value_gradients(model, dlogits, cache, names)
    each = [np.einsum("baqk,baqk->ba", found[name], contexts[name], dtype=np.float64) for name in names]
    return np.stack(each, axis=1)

"""Masked and causal language modelling in one model (GPT-BERT): a share of the sequences is read causally.

    loss = (1 - c) mean over masked positions of -ln p(x_i | both sides)
         +      c  mean over causal positions of -ln p(x_i | x_1 ... x_(i-1))               c: `causal`, a quarter

Which sequences are causal is drawn by (seed, epoch, sequence). In these attention hides what is later (the score term
causal_rows), and token i is predicted at position i - 1. In the others a masked token is predicted at its own position.
GPT-BERT predicts it at i - 1 too, so that every output means "the next token". Here it stays at its place: everything
that reads a masked token, such as fill-mask, evaluate, minimal pairs and files of Hugging Face, reads it there, and a
model so trained is a BERT for all of them, while `generate` asks the same model for causal attention. The
two places cannot be confused: a causal row has no [MASK], and nothing to its right is seen.
Derivation: docs/math/hybrid.md
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..core.context import DropoutKey
from ..core.model import MiniBERT
from ..core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward, found_first
from ..core.params import Gradients
from ..core.registry import register
from ..errors import ConfigError
from ..randomness import keyed_bits
from ..text.batches import MLMBatch, MLMBatches
from ..text.corpora.corpus import Corpus
from ..text.masking import BoolArray, IntArray
from ..text.sequences.sequences import PaddedSequences
from .causal import NextTokenBatches, next_tokens
from .masked import MaskedLM, heldout_batches, masked_predictions, rows_of
from .objective import USUAL_PASSES, BatchSettings, PassOptions, Team


def with_causal_rows(masked: MLMBatch, causal: BoolArray) -> MLMBatch:
    """A masked batch whose `causal` (B,) sequences are as in the text and predict the next token; these come last."""
    following = next_tokens(masked.target_ids, masked.attention_mask)
    rows = np.argsort(causal, kind="stable")                  # micro-batches of one kind have fewer rows to compute
    ids, targets, chosen = (np.where(causal[:, None], one, other)[rows]
                            for one, other in zip(following[:3], masked[:3], strict=True))
    return MLMBatch(ids, targets, chosen, masked.attention_mask[rows],
                    None if masked.token_types is None else masked.token_types[rows], causal=causal[rows])


class HybridBatches(MLMBatches):
    """Sequences as the masked objective has them, a share of them read causally."""

    def __init__(self, *given: Any, causal: float, **settings: Any):
        super().__init__(*given, **settings)
        self.causal = causal

    def batch(self, rows: PaddedSequences, epoch: int, numbers: IntArray, step: int) -> MLMBatch:
        lots = keyed_bits(numbers, 1, self.seed, "causal rows", epoch)[:, 0] / 2.0**64
        return with_causal_rows(super().batch(rows, epoch, numbers, step), lots < self.causal)


@register("objective", "hybrid")
class Hybrid(MaskedLM):
    """Of one model whose attention can be asked to be causal. Its two losses are logged as `masked` and `causal`."""

    needs: ClassVar[Mapping[str, Any]] = {"score_terms": "causal_rows"}

    def __init__(self, model: MiniBERT, passes: PassOptions = USUAL_PASSES, *, causal: float = 0.25):
        if isinstance(causal, bool) or not 0 < causal < 1:
            raise ConfigError(f"hybrid: causal must be a share of the sequences between 0 and 1, not {causal}.")
        super().__init__(model, passes)
        self.share, self.made_by = causal, partial(HybridBatches, causal=causal)
        self.losses = {"masked": 1 - causal, "causal": causal}

    def require_suitable(self, model: MiniBERT) -> None:
        super().require_suitable(model)
        if model.modules.causal or not model.modules.can_be_causal:
            raise ConfigError("The objective hybrid needs a model that is causal where it is asked to be: its "
                              "score_terms must have causal_rows, and not causal.")

    def heldout(self, corpus: Corpus, config: BatchSettings) -> list[MLMBatch]:
        """The masks of the masked objective, then the same sequences read causally."""
        if not corpus.manifest.heldout_documents:
            return []
        following = heldout_batches(corpus, config, made_by=NextTokenBatches)
        return [*heldout_batches(corpus, config),
                *(part._replace(causal=np.ones(len(part.input_ids), bool)) for part in following)]

    def counts(self, part: MLMBatch) -> Mapping[str, int]:
        causal = int(np.count_nonzero(part.mask_positions[_causal(part)]))
        return {"masked": int(np.count_nonzero(part.mask_positions)) - causal, "causal": causal}

    def add_gradients(self, part: MLMBatch, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, Any]:
        logits, cache = self.model.forward(part.input_ids, part.attention_mask, token_types=part.token_types,
                                           positions=part.mask_positions, causal=_causal(part), dropout_key=key,
                                           **self.passes.keeping)
        targets, masked, sums = part.target_ids[part.mask_positions], self.counts(part)["masked"], dict[str, Any]()
        for name, some in (("masked", slice(None, masked)), ("causal", slice(masked, None))):    # causal rows come last
            sums[name], kept = cross_entropy_forward(logits[some], targets[some], overwrite=True)
            if name == "masked":                  # what is masked is chosen by weights; what comes next is not
                sums |= self.tally(targets[some], found_first(kept))
            cross_entropy_backward(factors[name], kept, overwrite=True)          # dlogits, in the memory of the logits
        self.model.backward(logits, cache, grads, forget=True, last=True)
        return sums

    def evaluable(self, batch: MLMBatch) -> list[MLMBatch]:
        """The masked sequences and the causal ones, by themselves, as `heldout` has them."""
        causal = _causal(batch)
        return [part for some in (rows_of(batch, ~causal)._replace(causal=None), rows_of(batch, causal))
                for part in self.micro_batches(some)]

    def evaluate(self, parts: Sequence[MLMBatch], team: Team) -> dict[str, float]:
        figures: dict[str, float] = {}
        for name, own in (("masked", self.main_parts(parts)), ("causal", [p for p in parts if p.causal is not None])):
            if not own:                               # a few batches may have sequences of one kind alone
                continue
            found = masked_predictions(self.model, own, team)
            figures |= {name: float(found.loss.mean()), f"{name}_accuracy": float(found.right.mean())}
        return figures

    def main_parts(self, parts: Sequence[MLMBatch]) -> Sequence[MLMBatch]:
        return [part for part in parts if part.causal is None]

    def example(self, rng: np.random.Generator) -> MLMBatch:
        return with_causal_rows(super().example(rng), np.array([True, True, False]))

    def floats(self, sequences: int, masking_rate: float) -> int:
        return super().floats(sequences, self.share + (1 - self.share) * masking_rate)


def _causal(part: MLMBatch) -> BoolArray:
    return np.zeros(len(part.input_ids), bool) if part.causal is None else part.causal

"""Next-sentence prediction (BERT): does the second sentence follow the first, or is it a random one?

    loss = sum over pairs of -ln p(relation)       p = softmax(pool(h) W_N + b_N)       0: it follows

Half of the second sentences are of another document. The loss reads the pooled vector of [CLS]; with
`masked + next_sentence` and `sequences: pairs` the masked words are predicted in the same pass.
Derivation: docs/math/sentence_pairs.md
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array, BoolArray, IntArray
from ..core.context import Context, DropoutKey
from ..core.model import MiniBERT
from ..core.module import Sizes
from ..core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward, target_losses
from ..core.params import Gradients
from ..core.registry import register
from ..errors import ConfigError
from ..text.batches import MLMBatch, MLMBatches, unmarked
from ..text.corpora.corpus import Corpus
from ..text.sequences.pairs import RandomPairs
from ..text.sequences.sequences import PaddedSequences, PairSequences, Sequences
from .masked import MaskedLM, cut, heldout_batches, pass_floats
from .objective import BatchSettings, Team


class RelatedBatches(MLMBatches):
    """Pairs with nothing masked: their relation is what is to be predicted."""

    def batch(self, rows: PaddedSequences, epoch: int, numbers: IntArray, step: int) -> MLMBatch:
        return unmarked(rows)


@register("objective", "next_sentence")
class NextSentence(MaskedLM):
    """Of one model with a pooler and a head for pairs. An objective on other pairs is the same with other `pairs`."""

    main: str = "next_sentence"
    made_by = RelatedBatches
    needs: ClassVar[Mapping[str, Any]] = {"pooler": "tanh", "sentence_head": "pooled", "token_types": 2}
    shares_pass, of_words, masks = True, False, False
    pairs: ClassVar[type[PairSequences]] = RandomPairs

    def require_suitable(self, model: MiniBERT) -> None:
        if not model.modules.pools or not model.modules.relates_sentences or model.config.token_types < 2:
            raise ConfigError(f"The objective {self.main} needs a model that relates two sentences: set "
                              "model.pooler=tanh, model.sentence_head=pooled and model.token_types=2.")

    def mode(self, sequences: str) -> str | type[Sequences]:
        return self.pairs

    def heldout(self, corpus: Corpus, config: BatchSettings) -> list[MLMBatch]:
        return heldout_batches(corpus, config, made_by=self.made_by, mode=self.pairs, parts=cut) \
            if corpus.manifest.heldout_documents else []

    def micro_batches(self, batch: MLMBatch) -> list[MLMBatch]:
        return cut(batch, self.rows_at_a_time(batch))

    def counts(self, part: MLMBatch) -> Mapping[str, int]:
        return {self.main: len(part.input_ids)}

    def reads(self, part: MLMBatch) -> BoolArray:
        return self.model.modules.pooler.reads(part.attention_mask, None)

    def add_loss(self, rows: Array, part: MLMBatch, ctx: Context, grads: Gradients,
                 factor: float) -> tuple[Mapping[str, Any], Array]:
        pooler = self.model.modules.pooler
        pooled, pool = pooler.forward(self.model.params, rows, ctx)              # (B, H)
        scores, relate = self.model.relate(pooled)                               # (B, 2)
        loss, kept = cross_entropy_forward(scores, _relation(part))
        dpooled = self.model.relate_backward(cross_entropy_backward(factor, kept), relate, grads)
        return {self.main: loss}, pooler.backward(dpooled, pool, grads, ctx)

    def _pass(self, part: MLMBatch, **options: Any) -> tuple[Array, Any]:
        return self.model.encode(part.input_ids, part.attention_mask, token_types=part.token_types,
                                 positions=self.reads(part), **options)

    def add_gradients(self, part: MLMBatch, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, Any]:
        rows, cache = self._pass(part, dropout_key=key, **self.passes.keeping)
        sums, drows = self.add_loss(rows, part, cache.ctx, grads, factors[self.main])
        self.model.encode_backward(drows, cache, grads, forget=True, last=True)
        return sums

    def evaluate(self, parts: Sequence[MLMBatch], team: Team) -> dict[str, float]:
        def one(part: MLMBatch) -> tuple[npt.NDArray[np.float64], BoolArray]:
            rows, cache = self._pass(part, forward_only=True)
            pooled, _ = self.model.modules.pooler.forward(self.model.params, rows, cache.ctx)
            scores, _ = self.model.relate(pooled)
            return target_losses(scores, _relation(part)), scores.argmax(axis=1) == _relation(part)

        losses, right = (np.concatenate(arrays) for arrays in zip(*team.map(one, parts), strict=True))
        return {self.main: float(losses.mean()), f"{self.main}_accuracy": float(right.mean())}

    def example(self, rng: np.random.Generator) -> MLMBatch:
        batch = super().example(rng)
        types = np.arange(batch.input_ids.shape[1]) // 3 % 2 * batch.attention_mask
        return batch._replace(input_ids=batch.target_ids, mask_positions=np.zeros_like(batch.mask_positions),
                              token_types=types, relation=np.arange(len(types)) % 2)

    def floats(self, sequences: int, masking_rate: float) -> int:
        sizes = Sizes(sequences * self.model.config.max_seq_length, sequences, self.model.config.max_seq_length)
        heads = self.model.modules.pooler, self.model.modules.sentence_head
        return pass_floats(self.model, sequences, sequences, 2) + sum(head.floats(sizes) for head in heads)


def _relation(part: MLMBatch) -> IntArray:
    assert part.relation is not None, "a batch without relations"
    return part.relation

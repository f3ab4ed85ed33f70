"""Replaced-token detection (ELECTRA): a small generator fills masks, and the model finds what it got wrong.

    generator:      loss_G = sum over masked positions of -ln p_G(x_i)
    replacements:   y_i drawn from p_G at masked positions, y_i = x_i elsewhere;   label_i = [y_i != x_i]
    discriminator:  loss_D = sum over all real tokens of -ln s(+-z_i)      z = the logits on y, s the logistic function
    total = mean loss_G + 50 mean loss_D

The model that learns is the discriminator, with the head replaced_tokens: every token gives it something to learn, not
the masked ones alone. The generator has its depth and a quarter of its width, and the same embeddings of words,
positions and types with their LayerNorm. Nothing flows back through the draw: the generator learns from its own loss
alone. A token that it guesses right is not a replaced one. Of the 15 % of tokens that are chosen, 85 % are masked and
15 % kept. A replacement is found where the sum of the probabilities passes a number in [0, 1) that is keyed by (seed,
epoch, sequence, place): the distribution is that of the largest logit with Gumbel noise, for one random number in place
of V. The generator is saved beside the model. Derivation: docs/math/electra.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array
from ..core.config import ModelConfig
from ..core.context import DropoutKey
from ..core.model import MiniBERT
from ..core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward, found_first, target_losses
from ..core.params import Gradients, Parameters, Tie
from ..core.registry import register
from ..errors import ConfigError
from ..randomness import generator as keyed_generator
from ..randomness import keyed_bits
from ..text.batches import MLMBatch, MLMBatches
from ..text.masking import BoolArray, IntArray
from ..text.sequences.sequences import PaddedSequences
from .joint_params import PrefixedGradients, join
from .masked import MaskedLM, pass_floats
from .objective import USUAL_PASSES, PassOptions, Team

MASKED = 0.85                 # of the chosen tokens; the others are kept
GENERATOR = "generator"       # its loss, its parameters' prefix, and its directory in a run

Floats = npt.NDArray[np.float64]


class ReplacedBatches(MLMBatches):
    """Chosen tokens as the masked objective has them, masked or kept, and a number for each draw."""

    def batch(self, rows: PaddedSequences, epoch: int, numbers: IntArray, step: int) -> MLMBatch:
        batch = super().batch(rows, epoch, numbers, step)

        def lots(purpose: str) -> Floats:
            found: Floats = keyed_bits(numbers, rows.ids.shape[1], self.seed, purpose, epoch) / 2.0**64
            return found

        hidden = batch.mask_positions & (lots("masked or kept") < MASKED)
        return batch._replace(input_ids=np.where(hidden, self.sequences.vocabulary.mask, rows.ids),
                              draws=lots("replacement"))


def generator_config(config: ModelConfig, share: float) -> ModelConfig:
    """The generator of a discriminator: as deep, with this share of its width, and embeddings of the same width."""
    heads = max(1, round(share * config.num_heads))
    hidden, E = heads * max(1, round(share * config.hidden_size / heads)), config.embedding_width
    return replace(config, num_heads=heads, hidden_size=hidden, embedding_size=0 if hidden == E else E,
                   intermediate_size=max(1, round(share * config.intermediate_size)), mlm_head="bert", pooler="none",
                   sentence_head="none")


def drawn(weights: Array, numbers: Floats) -> IntArray:
    """From weights (M, V), which need not sum to one, and numbers (M,) in [0, 1): a column for each row."""
    sums = np.cumsum(weights, axis=1, dtype=np.float64)
    passed = (sums <= (numbers * sums[:, -1])[:, None]).sum(axis=1)
    found: IntArray = np.minimum(passed, weights.shape[1] - 1)
    return found


def two_classes(logits: Array) -> Array:
    """logits (M,) -> (M, 2) whose softmax is the logistic function: s(z) = e^z / (e^0 + e^z)."""
    return np.stack([np.zeros_like(logits), logits], axis=1)


class Replaced(NamedTuple):
    """What the discriminator reads, and for each real token, in reading order, whether it was replaced."""

    ids: IntArray
    labels: IntArray


def with_replacements(part: MLMBatch, weights: Array) -> Replaced:
    """The original tokens, with draws from the generator's weights (M, V) at the chosen positions."""
    assert part.draws is not None, "a batch without numbers to draw by"
    ids, chosen = part.target_ids.copy(), part.mask_positions
    ids[chosen] = drawn(weights, part.draws[chosen])
    return Replaced(ids, (ids != part.target_ids)[part.attention_mask].astype(np.int64))


@register("objective", "replaced_tokens")
class ReplacedTokens(MaskedLM):
    """Of a discriminator and its generator, which is the model that predicts words here."""

    main: str = "replaced_tokens"
    made_by = ReplacedBatches
    of_words = False
    needs: ClassVar[Mapping[str, Any]] = {"mlm_head": "replaced_tokens"}

    def __init__(self, model: MiniBERT, passes: PassOptions = USUAL_PASSES, *, generator: float = 0.25,
                 weight: float = 50.0, seed: int = 0):
        if not model.modules.finds_replaced:
            raise ConfigError("The objective replaced_tokens needs a model that finds replaced tokens; model.mlm_head "
                              f"must be replaced_tokens, not {model.config.mlm_head}.")
        for name, value, most in (("generator", generator, 1.0), ("weight", weight, 1e6)):
            if isinstance(value, bool) or not 0 < value <= most:
                raise ConfigError(f"replaced_tokens: {name} must be above 0 and at most {most:g}, not {value}.")
        draw = keyed_generator(seed, "generator of replacements")
        made = MiniBERT(generator_config(model.config, generator), dtype=model.dtype, seed=int(draw.integers(2**32)))
        super().__init__(made, passes)
        self.discriminator = model
        own = {spec.name: spec for spec in made.modules.embed.before_projection()}
        ties = [Tie(f"{GENERATOR}.{spec.name}", spec.name) for spec in model.modules.embed.before_projection()
                if own[spec.name].shape == spec.shape]
        self.params: Parameters = join({"": model.params, f"{GENERATOR}.": made.params}, ties)
        self.losses = {GENERATOR: 1.0, self.main: weight}

    def counts(self, part: MLMBatch) -> Mapping[str, int]:
        return {GENERATOR: int(np.count_nonzero(part.mask_positions)), self.main: self.tokens(part)}

    def _generate(self, part: MLMBatch, **options: Any) -> tuple[Array, Any]:
        return self.model.forward(part.input_ids, part.attention_mask, token_types=part.token_types,
                                  positions=part.mask_positions, **options)

    def _detect(self, part: MLMBatch, ids: IntArray, **options: Any) -> tuple[Array, Any]:
        return self.discriminator.forward(ids, part.attention_mask, token_types=part.token_types,
                                          positions=part.attention_mask, **options)

    def add_gradients(self, part: MLMBatch, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, Any]:
        logits, cache = self._generate(part, dropout_key=None if key is None else (*key, GENERATOR),
                                       **self.passes.keeping)
        targets = part.target_ids[part.mask_positions]
        generated, kept = cross_entropy_forward(logits, targets, overwrite=True)
        tally = self.tally(targets, found_first(kept))                           # of the generator's first guesses
        found = with_replacements(part, kept[0])                                 # exp(logits), up to a factor a row
        dlogits = cross_entropy_backward(factors[GENERATOR], kept, overwrite=True)
        del logits, kept
        self.model.backward(dlogits, cache, PrefixedGradients(grads, f"{GENERATOR}."), forget=True, last=True)
        # the draw is a constant from here on: its labels teach the discriminator alone
        scores, cache = self._detect(part, found.ids, dropout_key=key, **self.passes.keeping)
        detected, kept = cross_entropy_forward(two_classes(scores), found.labels)
        dscores = cross_entropy_backward(factors[self.main], kept)[:, 1]         # the first column is no parameter's
        self.discriminator.backward(dscores, cache, grads, forget=True, last=True)
        return {GENERATOR: generated, self.main: detected, **tally}

    def evaluate(self, parts: Sequence[MLMBatch], team: Team) -> dict[str, float]:
        """Both losses; how often the discriminator is right, how often it would be if it called no token replaced, and
        the share of replaced tokens that it finds."""

        def one(part: MLMBatch) -> tuple[Floats, BoolArray, Floats, BoolArray, IntArray]:
            logits, _ = self._generate(part, forward_only=True)
            targets = part.target_ids[part.mask_positions]
            found = with_replacements(part, np.exp(logits - logits.max(axis=1, keepdims=True)))
            scores, _ = self._detect(part, found.ids, forward_only=True)
            return (target_losses(logits, targets), logits.argmax(axis=1) == targets,
                    target_losses(two_classes(scores), found.labels), (scores > 0) == found.labels, found.labels)

        generated, guessed, detected, right, labels = (
            np.concatenate(arrays) for arrays in zip(*team.map(one, parts), strict=True))
        replaced = labels == 1
        return {self.main: float(detected.mean()), GENERATOR: float(generated.mean()),
                "generator_accuracy": float(guessed.mean()), "replaced_tokens_accuracy": float(right.mean()),
                "majority_accuracy": float(1 - replaced.mean()),
                "replaced_tokens_recall": float(right[replaced].mean()) if replaced.any() else 0.0}

    def companions(self) -> Mapping[str, MiniBERT]:
        return {GENERATOR: self.model}

    def example(self, rng: np.random.Generator) -> MLMBatch:
        """Draws that take the first or the last token whatever the generator says, once the right one: a small change
        of its parameters then changes no draw, and the losses are smooth."""
        batch = super().example(rng)
        draws = rng.integers(0, 2, batch.input_ids.shape).astype(np.float64)
        draws[0, 1], batch.target_ids[0, 1] = 1.0, self.model.config.vocab_size - 1
        return batch._replace(draws=draws)

    def floats(self, sequences: int, masking_rate: float) -> int:
        tokens = sequences * self.model.config.max_seq_length
        return max(super().floats(sequences, masking_rate), pass_floats(self.discriminator, sequences, tokens, 1))

"""Distillation in pre-training (DistilBERT): a student reads masked text, and learns what its teacher makes of it.

    total = logits  T^2 KL(softmax(z / T) || softmax(x / T))     x, z: logits of the student and of the teacher
          + hidden  distance(h W, g)                             h, g: hidden states of a layer each; W if widths differ
          + masked  -ln p(true token)                            the labels, as masked language modelling has them

each divided by its own count. The teacher sees the same masked text. Logits and the last hidden states are compared at
the masked positions, or with `everywhere` at all tokens; other layers at all tokens. Derivation:
docs/math/distillation.md
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array, BoolArray, IntArray
from ...core.cache import Cache, resolved
from ...core.config import ModelConfig
from ...core.context import DropoutKey
from ...core.hooks import Hook
from ...core.model import MiniBERT
from ...core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from ...core.params import Gradients, Parameters, ParamSpec
from ...core.registry import Word, register
from ...errors import ConfigError
from ...text.batches import MLMBatch, MLMBatches
from ...text.corpora.corpus import Corpus
from ...text.sequences.sequences import Sequences
from ..joint_params import join
from ..masked import MaskedLM
from ..objective import USUAL_PASSES, BatchSettings, PassOptions, Team
from .layers import Pair, layer_pairs
from .matching import DISTANCES, soft_cross_entropy_backward, soft_cross_entropy_forward
from .teacher import (
    choice,
    number,
    open_teacher,
    require_length,
    require_same_tokens,
    require_unchanged,
    weight,
    weights_digest,
)

LOGITS, HIDDEN, MASKED = "distil", "distil_hidden", "masked"          # the losses
PREFIX = "distil."                                                    # of the parameters that are the objective's own


class Taught(NamedTuple):
    """What the teacher says about a micro-batch: logits (M, V), and the hidden states of each pair, rows (N, H_t)."""

    logits: Array | None
    hidden: list[Array]


@register("objective", "distil")
class Distillation(MaskedLM):
    """Of one model by another, whose logits have the weight `logits` and whose hidden states the weight `hidden`."""

    def __init__(self, model: MiniBERT, passes: PassOptions = USUAL_PASSES, *,
                 teacher: str | Word | MiniBERT | None = None, temperature: float = 2.0, logits: float = 5.0,
                 hidden: float = 1.0, masked: float = 2.0, layers: str | Word = "last", match: str | Word = "cosine",
                 everywhere: bool = False, seed: int = 0):
        super().__init__(model, passes)
        weights = {LOGITS: weight("logits", logits, "distil"), HIDDEN: weight("hidden", hidden, "distil"),
                   MASKED: weight("masked", masked, "distil")}
        self.losses = {name: value for name, value in weights.items() if value}
        if not self.losses.keys() & {LOGITS, HIDDEN}:
            raise ConfigError("distil: logits and hidden are both 0, so nothing is learned from the teacher.")
        self.main = next(iter(self.losses))
        self.temperature = number("temperature", temperature, "distil", least=0.0, above=True)
        self.distance = DISTANCES[choice("match", match, DISTANCES, "distil")]
        self.everywhere = everywhere
        self.teacher = open_teacher(teacher, "distil", model.dtype)
        self._digest = ""                                 # of the teacher, computed when it is asked for
        self.pairs: list[Pair] = []
        if HIDDEN in self.losses:
            self.pairs = layer_pairs(layers, model.config.num_layers, self.teacher.config.num_layers)
        if LOGITS in self.losses:
            self._require_logits()
        self.params = self._joined(seed)

    def _require_logits(self) -> None:
        ours, theirs = self.model.config.vocab_size, self.teacher.config.vocab_size
        if not self.teacher.modules.predicts_words:
            raise ConfigError(f"distil: the teacher {self.teacher.source} has no head that predicts words; set "
                              "logits=0 to learn from its hidden states alone.")
        if ours != theirs:
            raise ConfigError(f"distil: the teacher predicts {theirs} words and the student {ours}, so their logits "
                              "cannot be compared; both need one vocabulary, or set logits=0.")

    def _joined(self, seed: int) -> Parameters:
        """The student's parameters, with a matrix for each pair of layers of different widths."""
        ours, theirs = self.model.config.hidden_size, self.teacher.config.hidden_size
        if ours == theirs or not self.pairs:
            return self.model.params
        own = Parameters([ParamSpec(f"W_{pair.student}", (ours, theirs), ours**-0.5, component="projection")
                          for pair in self.pairs], self.model.dtype)
        own.initialise(seed)
        return join({"": self.model.params, PREFIX: own})

    # ---------------------------------------------------------------- batches

    def batches(self, corpus: Corpus, config: BatchSettings, mode: str | type[Sequences] | None = None) -> MLMBatches:
        require_same_tokens(self.teacher, corpus, "distil")
        require_length(self.teacher, max(config.at(0.0).max_seq_length, config.at(1.0).max_seq_length), "distil")
        made = super().batches(corpus, config, mode)
        if self.masking_weights is not None and not self.losses.keys() & {LOGITS, MASKED}:
            raise ConfigError("distil: with logits=0 and masked=0 the student predicts no words, so masking_weights "
                              "have nothing to learn from.")
        return made

    def counts(self, part: MLMBatch) -> Mapping[str, int]:
        asked, real = int(self._asked(part).sum()), int(np.count_nonzero(part.attention_mask))
        found = {LOGITS: asked, HIDDEN: sum(asked if _some_rows(self.model, pair.student) else real
                                            for pair in self.pairs),
                 MASKED: int(np.count_nonzero(part.mask_positions))}
        return {name: found[name] for name in self.losses}

    def _asked(self, part: MLMBatch) -> BoolArray:
        """Where logits are compared (B, T)."""
        return np.asarray(part.attention_mask if self.everywhere else part.mask_positions, bool)

    # ---------------------------------------------------------------- the teacher

    def _teach(self, part: MLMBatch) -> Taught:
        """The teacher's pass, at the rows where the student is compared with it."""
        asked, real = self._asked(part), np.asarray(part.attention_mask, bool)
        at = [asked if _some_rows(self.model, pair.student) else real for pair in self.pairs]
        computed = real if any(rows is real and _some_rows(self.teacher, pair.teacher)
                               for pair, rows in zip(self.pairs, at, strict=True)) else asked
        types = part.token_types if self.teacher.config.token_types else None
        run = self.teacher.forward if LOGITS in self.losses else self.teacher.encode
        out, cache = run(part.input_ids, part.attention_mask, token_types=types, positions=computed, forward_only=True)
        hidden = [_hidden(self.teacher, cache, pair.teacher)[rows[computed] if _some_rows(self.teacher, pair.teacher)
                                                             else rows.reshape(-1)]
                  for pair, rows in zip(self.pairs, at, strict=True)]
        return Taught(out[asked[computed]] if LOGITS in self.losses else None, hidden)

    # ---------------------------------------------------------------- losses and gradients

    def _pass(self, part: MLMBatch, **options: Any) -> tuple[Array | None, Cache]:
        """The student's logits, if a loss reads them, and its cache."""
        run = self.model.forward if self.losses.keys() & {LOGITS, MASKED} else self.model.encode
        out, cache = run(part.input_ids, part.attention_mask, token_types=part.token_types,
                         positions=self._asked(part), **options)
        return (out if cache.head is not None else None), cache

    def _compare(self, part: MLMBatch, logits: Array | None, cache: Cache, grads: Gradients | None,
                 factors: Mapping[str, float]) -> tuple[dict[str, float], Array | None, dict[str, Array]]:
        """The summed losses, dlogits, and the gradients of hidden states by their names, each times its factor."""
        taught = self._teach(part)
        sums: dict[str, float] = {}
        dlogits: Array | None = None
        if logits is not None and taught.logits is not None:
            sums[LOGITS], softened = soft_cross_entropy_forward(logits, taught.logits, self.temperature)
            dlogits = soft_cross_entropy_backward(factors[LOGITS], softened)
        if logits is not None and MASKED in self.losses:
            asked = self._asked(part)
            masked = part.mask_positions[asked] if self.everywhere else None
            sums[MASKED], labels = cross_entropy_forward(logits, part.target_ids[asked], masked)
            of_labels = cross_entropy_backward(factors[MASKED], labels)
            dlogits = of_labels if dlogits is None else np.add(dlogits, of_labels, out=dlogits)   # a sum of losses
        extra: dict[str, Array] = {}
        for pair, target in zip(self.pairs, taught.hidden, strict=True):
            rows = _hidden(self.model, cache, pair.student)
            some = _some_rows(self.model, pair.student)
            chosen = slice(None) if some else np.flatnonzero(part.attention_mask)
            drows = np.zeros_like(rows)
            loss, drows[chosen] = self._match(pair, rows[chosen], target, grads, factors[HIDDEN])
            sums[HIDDEN] = sums.get(HIDDEN, 0.0) + loss
            extra[_name(self.model, pair.student)] = drows
        return sums, dlogits, extra

    def _match(self, pair: Pair, rows: Array, target: Array, grads: Gradients | None,
               factor: float) -> tuple[float, Array]:
        """distance(rows W, target) and drows; adds dW. Without W, the rows themselves are compared."""
        name = f"{PREFIX}W_{pair.student}"
        if name not in self.params:
            loss, kept = self.distance.forward(rows, target)
            return loss, self.distance.backward(factor, kept)
        W = self.params[name]
        loss, kept = self.distance.forward(rows @ W, target)
        dy = self.distance.backward(factor, kept)
        if grads is not None:
            grads.add_product(name, rows, dy)             # y = rows W
        return loss, dy @ W.T

    def add_gradients(self, part: MLMBatch, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, Any]:
        logits, cache = self._pass(part, dropout_key=key, **self.passes.keeping)
        tally = {} if self.masking_weights is None or logits is None else self.tally(*self._first_guesses(part, logits))
        sums, dlogits, extra = self._compare(part, logits, cache, grads, factors)
        del logits
        if dlogits is None:
            nothing = np.zeros(cache.shape_of(self.model.config.hidden_size), self.model.dtype)
            self.model.encode_backward(nothing, cache, grads, forget=True, last=True, hook=_adding(extra))
        else:
            self.model.backward(dlogits, cache, grads, forget=True, last=True, hook=_adding(extra))
        return sums | tally

    def _first_guesses(self, part: MLMBatch, logits: Array) -> tuple[IntArray, BoolArray]:
        """The masked tokens, and which of them the student finds."""
        targets = part.target_ids[part.mask_positions]
        return targets, logits[part.mask_positions[self._asked(part)]].argmax(axis=1) == targets

    def evaluate(self, parts: Sequence[MLMBatch], team: Team) -> dict[str, float]:
        def one(part: MLMBatch) -> tuple[dict[str, float], BoolArray | None]:
            logits, cache = self._pass(part, forward_only=True)
            sums = self._compare(part, logits, cache, None, dict.fromkeys(self.losses, 0.0))[0]
            if logits is None:
                return sums, None
            return sums, self._first_guesses(part, logits)[1]

        found, counted = team.map(one, parts), [self.counts(part) for part in parts]
        means = {name: sum(sums[name] for sums, _ in found) / max(1, sum(counts[name] for counts in counted))
                 for name in self.losses}
        right = [values for _, values in found if values is not None]
        return means | ({"masked_accuracy": float(np.concatenate(right).mean())} if right else {})

    # ---------------------------------------------------------------- around a run

    def state(self) -> dict[str, Any]:
        return super().state() | {"teacher": self._teacher_digest()}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        require_unchanged(state, self._teacher_digest(), "distil")

    def _teacher_digest(self) -> str:
        self._digest = self._digest or weights_digest(self.teacher)
        return self._digest

    def floats(self, sequences: int, masking_rate: float) -> int:
        """Beside the student's, the teacher's weights, its logits, and the gradients of hidden states."""
        config, rate = self.model.config, 1.0 if self.everywhere else masking_rate
        tokens = sequences * config.max_seq_length
        taught = round(rate * tokens) * 3 * config.vocab_size if LOGITS in self.losses else 0
        return super().floats(sequences, rate) + taught + sum(spec.size for spec in self.teacher.params.values()) \
            + 2 * len(self.pairs) * tokens * self.teacher.config.hidden_size

    @staticmethod
    def example_settings(config: ModelConfig, dtype: Any, seed: int) -> dict[str, Any]:
        """What a gradient check needs besides the model: a teacher, deeper and wider than the student."""
        wider = ModelConfig.from_dict({**config.to_dict(), "hidden_size": 2 * config.hidden_size, "dropout": 0.0,
                                       "num_layers": config.num_layers + 1, "attention_dropout": 0.0})
        return {"teacher": MiniBERT(wider, dtype=dtype, seed=seed), "layers": "even"}


def _some_rows(model: MiniBERT, layer: int) -> bool:
    """Has a layer's output rows of the selected tokens alone?"""
    return bool(layer >= model.modules.stack.below)


def _name(model: MiniBERT, layer: int) -> str:
    """What hooks call a layer's output; of the last, what the model returns."""
    last = layer == model.config.num_layers - 1
    return "final_hidden" if last and model.modules.final_ln is not None else f"hidden_{layer}"


def _hidden(model: MiniBERT, cache: Cache, layer: int) -> Array:
    """A layer's output, rows (N, H); of the last, what the model returns."""
    last = layer == model.config.num_layers - 1
    found: Array = cache.top["final_hidden"] if last else resolved(cache.layers[layer])["hidden"]
    return found


def _adding(extra: Mapping[str, Array]) -> Hook:
    """A hook of a backward that adds to the gradients of these values."""
    return lambda name, gradient: gradient + extra[name] if name in extra else gradient

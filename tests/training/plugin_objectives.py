"""Objectives of a user's own file, for the tests: a second loss with a head, two models in one, and one that adapts."""

from dataclasses import replace

import numpy as np

from mini_bert import MiniBERT, register
from mini_bert.core.config import CLS, SEP
from mini_bert.core.gradients import add_mlm_gradients
from mini_bert.core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward, target_losses
from mini_bert.core.params import Parameters, ParamSpec, Tie
from mini_bert.objectives.joint_params import PrefixedGradients, join
from mini_bert.objectives.masked import MaskedLM
from mini_bert.objectives.objective import CorpusObjective
from mini_bert.randomness import generator
from mini_bert.text.batches import MLMBatches


class _Halves:
    """Sequences without masks, half of them with their two halves swapped; label 1 if so."""

    def __init__(self, sequences, seed):
        self.sequences, self.seed = sequences, seed

    def __getitem__(self, step):
        plain = self.sequences[step]
        return _swapped(plain.target_ids, plain.attention_mask, generator(self.seed, "swap", step))


def _swapped(ids, mask, rng):
    labels, ids = rng.integers(0, 2, len(ids)), ids.copy()
    for row in np.flatnonzero(labels):
        inside = np.flatnonzero(mask[row] & (ids[row] != CLS) & (ids[row] != SEP))
        ids[row, inside] = np.roll(ids[row, inside], len(inside) // 2)
    return ids, mask, labels


@register("objective", "swapped")
class Swapped(CorpusObjective):
    """Are the halves of a sequence swapped? A head of its own reads the first token."""

    main = "swapped"

    def __init__(self, model, passes, *, seed=0, std=0.1):
        self.model, self.passes, self.losses = model, passes, {"swapped": 1.0}
        self.head = Parameters([ParamSpec("W", (model.config.hidden_size, 2), std), ParamSpec("b", (2,))], model.dtype)
        self.head.initialise(seed)
        self.params = join({"": model.params, "swapped.": self.head})

    def batches(self, corpus, config):
        return _Halves(MLMBatches(corpus, max_seq_length=config.max_seq_length, batch_size=config.batch_size,
                                  seed=config.seed + 1), config.seed)

    def heldout(self, corpus, config):
        batches = MLMBatches(corpus, "heldout", max_seq_length=config.max_seq_length, batch_size=8)
        return [_Halves(batches, 0)[step] for step in range(2)]

    def micro_batches(self, batch):
        size = self.passes.rows_at_a_time(*batch[0].shape)
        return [tuple(field[i : i + size] for field in batch) for i in range(0, len(batch[0]), size)]

    def counts(self, part):
        return {self.main: len(part[2])}

    def tokens(self, batch):
        return int(batch[1].sum())

    def _scores(self, part, **options):
        first = np.zeros(part[0].shape, bool)
        first[:, 0] = True
        hidden, cache = self.model.encode(part[0], part[1], positions=first, **options)
        return hidden @ self.head["W"] + self.head["b"], hidden, cache

    def add_gradients(self, part, grads, key, factors):
        scores, hidden, cache = self._scores(part, dropout_key=key, **self.passes.keeping)
        loss, kept = cross_entropy_forward(scores, part[2])
        dscores = cross_entropy_backward(factors[self.main], kept)
        grads.add("swapped.W", hidden.T @ dscores)
        grads.add("swapped.b", dscores.sum(axis=0))
        self.model.encode_backward(dscores @ self.head["W"].T, cache, grads)
        return {self.main: loss}

    def evaluate(self, parts, team):
        losses = team.map(lambda part: target_losses(self._scores(part, forward_only=True)[0], part[2]), parts)
        return {self.main: float(np.concatenate(losses).mean())}

    def example(self, rng):
        mask = np.arange(7) < np.array([7, 5, 6])[:, None]
        ids = np.where(mask, rng.integers(5, self.model.config.vocab_size, mask.shape), 0)
        return _swapped(ids, mask, rng)


@register("objective", "two_models")
class TwoModels(MaskedLM):
    """A small generator and the model learn the same masks; the generator has the model's token embeddings."""

    main = "masked"

    def __init__(self, model, passes, *, seed=0):
        super().__init__(model, passes)
        self.generator = MiniBERT(replace(model.config, num_layers=1), dtype=model.dtype, seed=seed + 1)
        self.params = join({"": model.params, "generator.": self.generator.params},
                           ties=[Tie("generator.token_embeddings", "token_embeddings")])
        self.losses = {"masked": 1.0, "generator": 3.0, "length": 0.0}

    def counts(self, part):
        masked = int(part.mask_positions.sum())
        return {"masked": masked, "generator": masked, "length": len(part.input_ids)}

    def add_gradients(self, part, grads, key, factors):
        sums = {"length": float(part.attention_mask.sum())}       # weight 0: only measured
        for name, model, its in (("masked", self.model, grads),
                                 ("generator", self.generator, PrefixedGradients(grads, "generator."))):
            sums[name], _ = add_mlm_gradients(model, its, *part[:4], dropout_key=key, factor=factors[name],
                                              **self.passes.keeping)
        return sums


class _Chosen:
    """Batches that keep the masks of the tokens that the objective finds hard."""

    def __init__(self, batches, objective):
        self.batches, self.objective = batches, objective

    def __getitem__(self, step):
        batch = self.batches[step]
        hard = self.objective.weights[batch.target_ids] >= self.objective.level
        chosen = batch.mask_positions & (hard | (np.arange(batch.input_ids.shape[1]) % 2 == 0))
        return batch._replace(mask_positions=chosen if chosen.any() else batch.mask_positions)


@register("objective", "adaptive")
class Adaptive(MaskedLM):
    """Asks more often for tokens in steps whose loss was high: its weights and its level are its state."""

    main = "adaptive"

    def __init__(self, model, passes):
        super().__init__(model, passes)
        self.weights, self.level, self.heard = np.ones(model.config.vocab_size), 1.0, []

    def batches(self, corpus, config):
        return _Chosen(super().batches(corpus, config), self)

    def feedback(self, step, losses, figures):
        self.weights *= 0.9
        self.weights[step % len(self.weights) :: 3] += losses[self.main].mean / 10
        self.level = 0.5 * self.level + 0.5 * float(np.median(self.weights))
        self.heard.append([step, figures.get(self.main)])

    def state(self):
        return {"weights": self.weights, "level": self.level, "heard": self.heard}

    def restore(self, state):
        self.weights[...] = state["weights"]
        self.level, self.heard = state["level"], [list(pair) for pair in state["heard"]]

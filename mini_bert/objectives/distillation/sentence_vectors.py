"""Distillation of sentence vectors: a student learns those of a teacher, which may have another tokenizer and width.

    v = mean of h over a sentence's tokens, t = the teacher's vector of the same text
    total = similarities  sum over pairs of a group (cos(v_i, v_j) - cos(t_i, t_j))^2      divided by pairs
          + vectors       distance(v W, t)                                                 divided by sentences

The first teaches what the vectors are used for, how near sentences are to each other, and needs no map between the
widths. The second says more about each sentence, through a matrix W where the widths differ; W belongs to the
objective and is left behind, since `mini-bert embed` reads v. The teacher's vectors are computed before the first step,
and kept: see teacher_vectors.py. Derivation: docs/math/distillation.md
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.config import ModelConfig
from ...core.context import DropoutKey
from ...core.model import MiniBERT
from ...core.params import Gradients, Parameters, ParamSpec
from ...core.registry import Word, register
from ...errors import ConfigError
from ...text.corpora.corpus import Corpus
from ..joint_params import join
from ..masked import EVAL_SEED
from ..objective import USUAL_PASSES, Batches, BatchSettings, PassOptions, Team
from ..vectors.sentences import SentenceBatch, SentenceBatches, SentenceObjective, off_diagonal
from ..vectors.unit_rows import pool_backward, pool_forward, unit_rows_forward
from .matching import DISTANCES, similarities_backward, similarities_forward
from .teacher import choice, open_teacher, require_unchanged, weight, weights_digest
from .teacher_vectors import SampledSentences, Say, TeacherVectors

SIMILARITIES, VECTORS = "similarities", "vectors"         # the losses
PREFIX = "sentence_vectors."                              # of the parameters that are the objective's own
_NAME = "sentence_vectors"


class _Alone:
    """A team of one, for whoever has no threads."""

    def map(self, function: Any, items: Any) -> list[Any]:
        return [function(item) for item in items]


_ALONE = _Alone()


class TaughtSentences:
    """Batches of sentences with the teacher's vectors."""

    def __init__(self, source: SentenceBatches, vectors: TeacherVectors):
        self.source, self.vectors = source, vectors

    def __getitem__(self, step: int) -> SentenceBatch:
        batch, numbers = self.source.sentences(step)
        return batch._replace(vectors=self.vectors(numbers))

    def __len__(self) -> int:
        return len(self.source)


@register("objective", "sentence_vectors")
class SentenceVectors(SentenceObjective):
    """Of one model by another; `sentences` of the corpus are used, or all of them."""

    def __init__(self, model: MiniBERT, passes: PassOptions = USUAL_PASSES, *,
                 teacher: str | Word | MiniBERT | None = None, similarities: float = 1.0, vectors: float = 1.0,
                 match: str | Word = "cosine", group: int = 64, sentences: int = 0, seed: int = 0):
        super().__init__(model, passes, _NAME, group)
        weights = {SIMILARITIES: weight(SIMILARITIES, similarities, _NAME), VECTORS: weight(VECTORS, vectors, _NAME)}
        self.losses = {name: value for name, value in weights.items() if value}
        if not self.losses:
            raise ConfigError("sentence_vectors: similarities and vectors are both 0, so nothing is learned.")
        if isinstance(sentences, bool) or not isinstance(sentences, int) or sentences < 0:
            raise ConfigError(f"sentence_vectors: sentences must be a whole number, or 0 for all, not {sentences}.")
        self.main, self.sentences = next(iter(self.losses)), sentences
        self.distance = DISTANCES[choice("match", match, DISTANCES, _NAME)]
        self.teacher = open_teacher(teacher, _NAME, np.float32)
        self._digest = ""                                 # of the teacher, computed when it is asked for
        self._kept: dict[tuple[str, int, str], TeacherVectors] = {}
        self.params = self._joined(seed)

    def _joined(self, seed: int) -> Parameters:
        """The student's parameters, and W (H, D) if a loss compares vectors of different widths."""
        ours, theirs = self.model.config.hidden_size, self.teacher.config.hidden_size
        if ours == theirs or VECTORS not in self.losses:
            return self.model.params
        own = Parameters([ParamSpec("W", (ours, theirs), ours**-0.5, component="projection")], self.model.dtype)
        own.initialise(seed)
        return join({"": self.model.params, PREFIX: own})

    # ---------------------------------------------------------------- batches

    def prepare(self, corpus: Corpus, config: BatchSettings, team: Team, say: Say) -> None:
        for split in ("train", "heldout") if corpus.manifest.heldout_documents else ("train",):
            self._vectors(corpus, split, config, team, say)

    def _vectors(self, corpus: Corpus, split: str, config: BatchSettings, team: Team = _ALONE,
                 say: Say = lambda sentence: None) -> TeacherVectors:
        """The teacher's vectors of a split, computed unless that has been done."""
        key = str(corpus.directory), config.at(1.0).max_seq_length, split
        if key not in self._kept:
            most = self.sentences if split == "train" else -(-config.eval_sequences // self.group) * self.group
            found = TeacherVectors(self.teacher, SampledSentences(corpus, split, key[1], most))
            found.complete(team, say)
            self._kept[key] = found
        return self._kept[key]

    def _batches(self, corpus: Corpus, split: str, config: BatchSettings, *, batch_size: int,
                 seed: int) -> TaughtSentences:
        vectors = self._vectors(corpus, split, config)
        source = SentenceBatches(corpus, split, config, batch_size=batch_size, seed=seed, some=vectors.sentences)
        return TaughtSentences(source, vectors)

    def batches(self, corpus: Corpus, config: BatchSettings) -> Batches[SentenceBatch]:
        return self._batches(corpus, "train", config, batch_size=config.at(1.0).batch_size, seed=config.seed)

    def heldout(self, corpus: Corpus, config: BatchSettings) -> list[SentenceBatch]:
        if not corpus.manifest.heldout_documents:
            return []
        source = self._batches(corpus, "heldout", config, batch_size=self.group, seed=EVAL_SEED)
        return [part for step in range(len(source)) for part in self.micro_batches(source[step])]

    def counts(self, part: SentenceBatch) -> Mapping[str, int]:
        n = len(part.input_ids)
        found = {SIMILARITIES: n * (n - 1), VECTORS: n}
        return {name: found[name] for name in self.losses}

    # ---------------------------------------------------------------- losses and gradients

    def _compare(self, vectors: Array, taught: Array, grads: Gradients | None,
                 factors: Mapping[str, float]) -> tuple[dict[str, float], Array]:
        """The summed losses of the student's vectors (n, H), and dvectors of each loss times its factor."""
        sums: dict[str, float] = {}
        dvectors = np.zeros_like(vectors)
        if SIMILARITIES in self.losses:
            sums[SIMILARITIES], near = similarities_forward(vectors, taught)
            dvectors += similarities_backward(factors[SIMILARITIES], near)
        if VECTORS in self.losses:
            W = self.params.get(f"{PREFIX}W")
            sums[VECTORS], kept = self.distance.forward(vectors if W is None else vectors @ W, taught)
            dy = self.distance.backward(factors[VECTORS], kept)
            if W is not None and grads is not None:
                grads.add_product(f"{PREFIX}W", vectors, dy)                     # y = vectors W
            dvectors += dy if W is None else dy @ W.T
        return sums, dvectors

    def _taught(self, part: SentenceBatch) -> Array:
        assert part.vectors is not None, "the batch has no vectors of the teacher"
        return part.vectors.astype(self.model.dtype)

    def add_gradients(self, part: SentenceBatch, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, float]:
        vectors, pooled = pool_forward(self.model, part.input_ids, part.attention_mask, dropout_key=key,
                                       **self.passes.keeping)
        sums, dvectors = self._compare(vectors, self._taught(part), grads, factors)
        pool_backward(dvectors, pooled, self.model, grads)
        return sums

    def evaluate(self, parts: Sequence[SentenceBatch], team: Team) -> dict[str, float]:
        """The losses, and `similarity_correlation`: how the cosines of the pairs go with those of the teacher."""
        def one(part: SentenceBatch) -> tuple[dict[str, float], Array, Array]:
            vectors, _ = pool_forward(self.model, part.input_ids, part.attention_mask, forward_only=True)
            sums, _ = self._compare(vectors, self._taught(part), None, dict.fromkeys(self.losses, 0.0))
            u, t = unit_rows_forward(vectors)[0], unit_rows_forward(self._taught(part))[0]
            return sums, u @ u.T, t @ t.T

        found, counted = team.map(one, parts), [self.counts(part) for part in parts]
        means = {name: sum(sums[name] for sums, *_ in found) / max(1, sum(counts[name] for counts in counted))
                 for name in self.losses}
        ours, theirs = (off_diagonal([some[place] for some in found]) for place in (1, 2))
        varied = len(ours) > 2 and ours.std() > 0 and theirs.std() > 0
        return means | {"similarity_correlation": float(np.corrcoef(ours, theirs)[0, 1]) if varied else 0.0}

    def example(self, rng: np.random.Generator) -> SentenceBatch:
        batch = super().example(rng)
        return batch._replace(vectors=rng.standard_normal((len(batch.input_ids), self.teacher.config.hidden_size)))

    # ---------------------------------------------------------------- around a run

    def state(self) -> dict[str, Any]:
        self._digest = self._digest or weights_digest(self.teacher)
        return {"teacher": self._digest}

    def restore(self, state: Mapping[str, Any]) -> None:
        require_unchanged(state, self.state()["teacher"], _NAME)

    @staticmethod
    def example_settings(config: ModelConfig, dtype: Any, seed: int) -> dict[str, Any]:
        """What a gradient check needs besides the model: a teacher wider than the student."""
        wider = ModelConfig.from_dict({**config.to_dict(), "hidden_size": 2 * config.hidden_size})
        return {"teacher": MiniBERT(wider, dtype=dtype, seed=None), "group": 3}

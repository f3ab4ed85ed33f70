"""The structural probe of Hewitt and Manning (2019): do distances of word vectors encode the dependency tree?

    distance:  d_ij = |B^T (h_i - h_j)|^2    loss = sum over sentences of sum_ij |D_ij - d_ij| / n^2
    depth:     d_i  = |B^T h_i|^2            loss = sum over sentences of sum_i |D_i - d_i| / n

D are the distances between words in the tree, or their depths below the root; B (H, k) is learned. With p = h B,

    dp_i = 2 sum_j (g_ij + g_ji) (p_i - p_j)     g = d loss / d d_ij         dp_i = 2 g_i p_i   for depths
    dB   = h^T dp                                the derivative of |x| is sign(x)

Features are divided by their standard deviations, which B could do as well, but not centred. Sentences are batched by
length, so there is no padding.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from ...core.arrays import Array, IntArray
from ...core.context import DropoutKey
from ...core.gradcheck import CheckResult, gradient_check
from ...core.model import MiniBERT
from ...core.params import Gradients, Parameters, ParamSpec
from ...errors import DataError, InputError
from ...randomness import generator
from ...text.tokenizer import Tokenizer
from ...workers import Workers, workers
from ..formats.conllu import Sentence
from ..statistics import Interval, over_seeds
from .classifier import Rows
from .fitting import Schedule, fit_probe
from .quantised_vectors import QuantisedVectors
from .sets import probe_sets
from .trees import StructuralScores, Trees, by_sentence_length, linear_chain, structural_scores
from .word_vectors import EMBEDDINGS, chosen_layers


@dataclass(frozen=True)
class StructuralRecipe:
    """Hyperparameters for learning B; the loss on the development set controls the learning rate and stopping."""

    learning_rate: float = 1e-3       # the paper's
    batch_size: int = 32              # sentences
    max_epochs: int = 20
    halvings: int = 3


# ---------------------------------------------------------------- the two probes


def distance_forward(h: Array, B: Array) -> tuple[Array, tuple[Array, Array]]:
    """h (S, n, H), B (H, k) -> squared distances (S, n, n)."""
    p = h @ B                                                                 # (S, n, k)
    squares = np.einsum("sik,sik->si", p, p)
    d = p @ p.transpose(0, 2, 1)                                              # (S, n, n)
    d *= -2
    d += squares[:, :, None]
    d += squares[:, None, :]
    return d, (h, p)


def distance_backward(dd: Array, cache: tuple[Array, Array]) -> Array:
    """dd (S, n, n) -> dB (H, k)."""
    h, p = cache
    both = dd + dd.transpose(0, 2, 1)                                         # d_ij and d_ji are the same distance
    dp = p * both.sum(axis=2)[:, :, None]
    dp -= both @ p
    dp *= 2
    return _product(h, dp)


def depth_forward(h: Array, B: Array) -> tuple[Array, tuple[Array, Array]]:
    """h (S, n, H), B (H, k) -> squared norms (S, n)."""
    p = h @ B
    return np.einsum("sik,sik->si", p, p), (h, p)


def depth_backward(dd: Array, cache: tuple[Array, Array]) -> Array:
    """dd (S, n) -> dB (H, k)."""
    h, p = cache
    return _product(h, 2 * dd[:, :, None] * p)


def _product(h: Array, dp: Array) -> Array:
    product: Array = h.reshape(-1, h.shape[-1]).T @ dp.reshape(-1, dp.shape[-1])
    return product


def l1_loss(d: Array, gold: Array) -> tuple[float, Array]:
    """The loss summed over sentences (S, n, n) or (S, n), each divided by n^2 or n; and its gradient."""
    difference = d - gold
    scale = 1 / difference[0].size
    return float(np.abs(difference).sum(dtype=np.float64)) * scale, np.sign(difference) * difference.dtype.type(scale)


_PROBES: dict[str, tuple[Callable[..., tuple[Array, tuple[Array, Array]]], Callable[..., Array]]] = {
    "distance": (distance_forward, distance_backward), "depth": (depth_forward, depth_backward)}


def _gold(trees: Trees, kind: str) -> Array:
    return trees.distances if kind == "distance" else trees.depths


def train_structural(kind: str, x: Rows, train: Sequence[Trees], dev_x: Rows, dev: Sequence[Trees], *, rank: int,
                     recipe: StructuralRecipe | None = None, seed: int = 0) -> Array:
    """Learn B (H, rank) of the distance or the depth probe on vectors x (N, H); the best epoch on `dev` is kept."""
    recipe = recipe or StructuralRecipe()
    if kind not in _PROBES:
        raise InputError(f"A structural probe is one of {' and '.join(_PROBES)}, not {kind!r}.")
    if not 1 <= rank <= x.shape[1]:
        raise InputError(f"The rank must be between 1 and {x.shape[1]}, the size of the vectors, not {rank}.")
    loss = _StructuralLoss(kind, x, rank, recipe.batch_size, seed)
    B = loss.params["B"]

    def batches(epoch: int) -> list[_Part]:
        rng = generator(seed, "structural order", kind, epoch)
        parts = [(trees, part) for trees in train for order in [rng.permutation(len(trees.rows))]
                 for part in np.split(order, range(recipe.batch_size, len(order), recipe.batch_size))]
        return [parts[number] for number in rng.permutation(len(parts)).tolist()]

    def score() -> float:
        return -sum(l1_loss(loss.forward(dev_x[trees.rows], B)[0], _gold(trees, kind))[0] for trees in dev)

    fit_probe(loss, batches, score, Schedule(recipe.learning_rate, recipe.max_epochs, recipe.halvings))
    return B


_Part = tuple[Trees, IntArray]            # sentences of one length, and the numbers of some


class _StructuralLoss:
    """The L1 loss of a probe's B on sentences of one length."""

    main = "probe"
    losses: Mapping[str, float] = {main: 1.0}

    def __init__(self, kind: str, x: Rows, rank: int, batch_size: int, seed: int):
        self.kind, self.x, self.batch_size = kind, x, batch_size
        self.forward, self.backward = _PROBES[kind]
        # initial distances of a few units, like those of trees
        self.params = Parameters([ParamSpec("B", (x.shape[1], rank), std=1 / sqrt(x.shape[1] * rank))], x.dtype)
        self.params.initialise(seed)

    def micro_batches(self, batch: _Part) -> list[_Part]:
        return [batch]

    def counts(self, part: _Part) -> Mapping[str, int]:
        return {self.main: self.batch_size}                       # every sentence has the same weight

    def add_gradients(self, part: _Part, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, float]:
        trees, numbers = part
        d, cache = self.forward(self.x[trees.rows[numbers]], self.params["B"])
        total, slope = l1_loss(d, _gold(trees, self.kind)[numbers])
        grads.add("B", factors[self.main] * self.backward(slope, cache))
        return {self.main: total}


def probe_structure(x: Rows, train: Sequence[Trees], dev_x: Rows, dev: Sequence[Trees], test_x: Rows,
                    test: Sequence[Trees], *, rank: int, recipe: StructuralRecipe | None = None,
                    seed: int = 0) -> tuple[StructuralScores, StructuralScores]:
    """Train both probes on the vectors of one layer; their scores on the development and the test set."""
    B = {kind: train_structural(kind, x, train, dev_x, dev, rank=rank, recipe=recipe, seed=seed) for kind in _PROBES}

    def scores(vectors: Rows, trees: Sequence[Trees]) -> StructuralScores:
        return structural_scores(trees, [distance_forward(vectors[group.rows], B["distance"])[0] for group in trees],
                                 [depth_forward(vectors[group.rows], B["depth"])[0] for group in trees])

    return scores(dev_x, dev), scores(test_x, test)


# ---------------------------------------------------------------- all layers of a model, with the baselines


@dataclass(frozen=True)
class StructuralReport:
    """The scores of each layer over seeds, of untrained models and of the linear chain, and a curve over ranks."""

    rank: int
    seeds: int
    sets: dict[str, dict[str, int]]
    chain: StructuralScores
    rows: list[dict[str, Any]]            # layer, dev, random_dev; and model and random, intervals by metric
    best: str                             # the layer, embeddings excluded, with the highest UUAS on the dev set
    rank_curve: list[dict[str, float]]
    notes: list[str]

    def verdict(self) -> dict[str, Any]:
        """The UUAS of the best layer against the chain, the embeddings, and the best layer of untrained models.

        The embeddings see a word and its position but no other word, so they are a baseline, not a candidate.
        """
        rows = {row["layer"]: row for row in self.rows}
        best, words = rows[self.best], rows.get(EMBEDDINGS)
        chance = max(self.rows, key=lambda row: float(row["random_dev"]))
        score, untrained = best["model"]["uuas"].mean, chance["random"]["uuas"].mean
        return {"layer": self.best, "figure": "uuas", "score": score, "chain": self.chain.uuas, "random": untrained,
                "random_layer": chance["layer"], "embeddings": words and words["model"]["uuas"].mean,
                "above_chain": score - self.chain.uuas, "above_random": score - untrained,
                "above_embeddings": words and score - words["model"]["uuas"].mean}

    def to_dict(self) -> dict[str, Any]:
        rows = [{name: {figure: interval._asdict() for figure, interval in value.items()}
                 if isinstance(value, dict) else value for name, value in row.items()} for row in self.rows]
        return {"task": "dep", "rank": self.rank, "seeds": self.seeds, "sets": self.sets,
                "baselines": {"linear chain": self.chain.to_dict()}, "rows": rows, "verdict": self.verdict(),
                "rank_curve": self.rank_curve, "notes": self.notes}


_Scores = tuple[StructuralScores, StructuralScores]       # on the development and on the test set
_Job = tuple[str, int, int]                               # layer, seed, rank


def probe_dependencies(model: MiniBERT, tokenizer: Tokenizer, train: Sequence[Sentence],
                       test: Sequence[Sentence], dev: Sequence[Sentence] | None = None, *,
                       layers: Sequence[str] | None = None, rank: int = 64, rank_curve: Sequence[int] = (),
                       seeds: int = 3, seed: int = 0, max_samples: int | None = None, threads: int = 0,
                       pooling: str = "mean", recipe: StructuralRecipe | None = None,
                       progress: Callable[[str, int, int], None] | None = None) -> StructuralReport:
    """Both structural probes on every layer, for several seeds; each seed has its own untrained model.

    Ranks above the size of the vectors are reduced to it. The rank curve is for the best layer and the first seed.
    """
    if seeds < 1:
        raise InputError(f"seeds must be at least 1, not {seeds}.")
    names = chosen_layers(model, layers)
    H, say = model.config.hidden_size, progress or (lambda what, done, total: None)
    sets = probe_sets(model, tokenizer, train, test, dev, max_samples=max_samples, seed=seed)
    for split, sentences in sets.sentences.items():
        if missing := sum(sentence.heads is None or sentence.upos is None for sentence in sentences):
            raise DataError(f"{missing:,} of {len(sentences):,} sentences of the {split} set have no heads or no UPOS "
                            "tags; the probe needs both.")
    trees = {split: by_sentence_length(sentences) for split, sentences in sets.sentences.items()}

    def run(team: Workers, network: MiniBERT, what: str, jobs: Sequence[_Job]) -> dict[_Job, _Scores]:
        asked = list(dict.fromkeys(layer for layer, _, _ in jobs))
        groups = sets.layer_groups(network, asked, pooling=pooling)
        found: dict[_Job, _Scores] = {}

        def run_group(vectors: dict[str, dict[str, QuantisedVectors]]) -> None:
            def one(job: _Job) -> None:
                layer, job_seed, k = job
                x = vectors[layer]
                found[job] = probe_structure(x["train"], trees["train"], x["dev"], trees["dev"], x["test"],
                                             trees["test"], rank=k, recipe=recipe, seed=job_seed)
                say(f"{what}: probes", len(found), len(jobs))

            team.map(one, [job for job in jobs if job[0] in vectors])

        sets.each_group(network, tokenizer, groups, run_group, pooling=pooling, centred=False, team=team,
                        progress=lambda done, total: say(f"{what}: vectors", done, total))
        return {job: found[job] for job in jobs}

    all_seeds, rank = range(seed, seed + seeds), min(rank, H)
    found: dict[str, dict[_Job, _Scores]] = {"random": {}}
    with workers(threads) as team:
        found["model"] = run(team, model, "model", [(name, s, rank) for name in names for s in all_seeds])

        def dev_mean(whose: str, layer: str) -> float:
            return float(np.mean([found[whose][layer, s, rank][0].uuas for s in all_seeds]))

        best = max([name for name in names if name != EMBEDDINGS] or names, key=lambda name: dev_mean("model", name))
        curve_ranks = sorted({min(k, H) for k in rank_curve})
        curve = run(team, model, "rank curve", [(best, seed, k) for k in curve_ranks]) if curve_ranks else {}
        for s in all_seeds:
            found["random"] |= run(team, MiniBERT(model.config, seed=s), f"random init {s}",
                                   [(name, s, rank) for name in names])

    def intervals(whose: str, layer: str) -> dict[str, Interval]:
        each = [found[whose][layer, s, rank][1].to_dict() for s in all_seeds]
        return {figure: over_seeds([scores[figure] for scores in each]) for figure in each[0]}

    rows = [{"layer": name, "dev": dev_mean("model", name), "random_dev": dev_mean("random", name),
             "model": intervals("model", name), "random": intervals("random", name)} for name in names]
    return StructuralReport(rank, seeds, sets.to_dict(), linear_chain(trees["test"]), rows, best,
                            [{"rank": k, **test_scores.to_dict()} for (_, _, k), (_, test_scores) in curve.items()],
                            sets.notes)


def gradient_checks(seed: int = 0) -> list[CheckResult]:
    """Check dB of both probes, for a random cotangent and for the loss."""
    results = []
    for kind, (forward, backward) in _PROBES.items():
        rng = generator(seed, "gradcheck", "structural probe", kind)
        h, B = rng.standard_normal((3, 5, 4)), rng.standard_normal((4, 3))
        d, cache = forward(h, B)
        cotangent, gold = rng.standard_normal(d.shape), rng.integers(0, 5, d.shape).astype(np.float64)
        if kind == "distance":                # d_ii is always 0, the kink of |D_ii - d_ii| if D_ii is 0
            gold += np.eye(5)

        def scores(forward: Callable[..., tuple[Array, object]] = forward, h: Array = h, B: Array = B,
                   cotangent: Array = cotangent) -> float:
            return float((forward(h, B)[0] * cotangent).sum())

        def loss(forward: Callable[..., tuple[Array, object]] = forward, h: Array = h, B: Array = B,
                 gold: Array = gold) -> float:
            return l1_loss(forward(h, B)[0], gold)[0]

        for what, function, dd in (("random cotangent", scores, cotangent), ("loss", loss, l1_loss(d, gold)[1])):
            results.append(CheckResult("structural probe", f"{kind}, {what}", "B",
                                       gradient_check(function, B, backward(dd, cache)).error))
    return results

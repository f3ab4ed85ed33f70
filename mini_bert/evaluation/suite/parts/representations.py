"""Representations: diversity, similarity of layers, attention, geometry, stability, composition."""

from typing import Any

from ...representations.composition import measure_compositional_understanding
from ...representations.stability import StabilityReport, kept, measure_representation_stability
from ...statistics import Interval
from ..context import EvaluationContext
from ..rows import NUMBER, PartResult, SummaryRow
from .predictions import SampleIntervals, nested, samples

_SHOWN = ("typo", "dropped word", "swapped words")        # perturbations shown in the summary


def representations(context: EvaluationContext) -> PartResult:
    """Token diversity, similarity of layers, attention entropy, rank of the weight matrices."""
    found = samples(context)
    over, first = SampleIntervals(found), found[0]["model"]
    last = list(first["geometry"])[-1]
    rows = [over.row("diversity of tokens, last layer", nested("geometry", last, "token_diversity"),
                     {"all alike": 0.0, "unrelated": 1.0}),
            over.row("likeness of first and last layer (CKA)", lambda of: float(of["layer_similarity"][0][-1]),
                     {"copies": 1.0}),
            over.row("entropy of attention", lambda of: _mean(of["attention_entropy_normalised"]),
                     {"even attention": 1.0})]
    details = {whose: {key: found[0][whose][key] for key in (
        "layer_similarity", "attention_entropy", "attention_entropy_normalised", "effective_rank")}
        for whose in ("model", "random_init")}
    diversity = {whose: {layer: of["token_diversity"] for layer, of in found[0][whose]["geometry"].items()}
                 for whose in details}
    return PartResult(rows, {"layers": list(first["geometry"]), "token_diversity": diversity, **details},
                      ["The details are for the first sample. Entropy is relative to that of uniform attention."])


def _mean(by_layer_and_head: list[list[float]]) -> float:
    return sum(map(sum, by_layer_and_head)) / sum(map(len, by_layer_and_head))


def geometry(context: EvaluationContext) -> PartResult:
    """How many directions the vectors use, and how anisotropic they are."""
    found = samples(context)
    over, layers, H = SampleIntervals(found), found[0]["model"]["geometry"], context.model.config.hidden_size
    last = list(layers)[-1]
    rows = [over.row(f"{figure}, last layer", nested("geometry", last, key),
                     {"all directions alike": even})
            for figure, key, even in (("effective dimensionality", "effective_dimensionality", float(H)),
                                      ("mean cosine of tokens", "mean_cosine", 0.0),
                                      ("variance along one direction", "top_component", 1 / H))]
    return PartResult(rows, {whose: found[0][whose]["geometry"] for whose in ("model", "random_init")},
                      [f"The details are for the first sample: {found[0]['tokens_compared']:,} tokens."])


def stability(context: EvaluationContext) -> PartResult:
    """How much of a sentence vector is retained when the sentence is changed slightly."""
    texts = context.text_sentences(context.sizes.texts, "stability texts")
    reports: list[StabilityReport] = []
    for network, name in ((context.model, "model"), (context.untrained(), "random init")):
        def heard(done: int, name: str = name) -> None:
            context.report(name, done, len(texts))
        reports.append(measure_representation_stability(
            network, context.tokenizer, texts, seeds=range(context.seed, context.seed + 3), progress=heard))
    rows = []
    for name in _SHOWN:
        of = reports[0].perturbations[name]
        if of.layers:
            rows.append(SummaryRow(f"kept after: {name}", _kept(reports[0], name),
                                   {"another sentence": 0.0, "the same": 1.0}, _kept(reports[1], name), NUMBER,
                                   f"{of.changed:,} changed sentences"))
    return PartResult(rows, {"model": reports[0].to_dict(), "random_init": reports[1].to_dict()}, [
        "The share of a sentence vector that is kept in the last layer: (cosine - baseline) / (1 - baseline), where "
        "the baseline is the cosine of unrelated sentences. Intervals are over three seeds of the perturbation."])


def _kept(report: StabilityReport, name: str) -> Interval:
    layer = list(report.baseline)[-1]
    base, cosine = report.baseline[layer].sentences, report.perturbations[name].layers[layer].sentence
    mean, low, high = (None if value is None else kept(value, base) for value in (cosine.mean, cosine.low, cosine.high))
    return Interval(0.0, None, None, 1) if mean is None else Interval(mean, low, high, cosine.values)


def composition(context: EvaluationContext) -> PartResult:
    """Negation, word order and phrases."""
    found = measure_compositional_understanding(context.model, context.tokenizer, seed=context.seed)
    rows = []
    for name, of in found.categories.items():
        baselines: dict[str, Any] = {"chance": of.chance} | ({} if of.control is None else {"control": of.control})
        rows.append(SummaryRow(name, of.score, baselines, of.random_init, sample=f"{of.cases:,} cases"))
    notes = [f"Left out: {name}: {reason}" for name, reason in found.left_out.items()]
    notes += [f"{name}: left out, because not all words are single pieces of the vocabulary: {', '.join(of.left_out)}."
              for name, of in found.categories.items() if of.left_out]
    return PartResult(rows, found.to_dict(), notes)

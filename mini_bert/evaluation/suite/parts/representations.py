"""Representations by themselves: diversity, likeness of layers, attention, geometry, stability, composition."""

from typing import Any

from ...representations.composition import measure_compositional_understanding
from ...representations.stability import StabilityReport, kept, measure_representation_stability
from ...statistics import Interval
from ..context import Context
from ..rows import NUMBER, Measured, Row
from .predictions import OverSamples, at, samples

_SHOWN = ("typo", "dropped word", "swapped words")        # perturbations of the summary


def representations(context: Context) -> Measured:
    """Diversity of tokens, likeness of layers, entropy of attention, rank of the matrices."""
    found = samples(context)
    over, first = OverSamples(found), found[0]["model"]
    last = list(first["geometry"])[-1]
    rows = [over.row("diversity of tokens, last layer", at("geometry", last, "token_diversity"),
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
    return Measured(rows, {"layers": list(first["geometry"]), "token_diversity": diversity, **details},
                    ["The details are of the first sample. Entropy is a share of that of attention to all tokens "
                     "alike."])


def _mean(by_layer_and_head: list[list[float]]) -> float:
    return sum(map(sum, by_layer_and_head)) / sum(map(len, by_layer_and_head))


def geometry(context: Context) -> Measured:
    """How many directions the vectors use, and how narrow a cone they fill."""
    found = samples(context)
    over, layers, H = OverSamples(found), found[0]["model"]["geometry"], context.model.config.hidden_size
    last = list(layers)[-1]
    rows = [over.row(f"{figure}, last layer", at("geometry", last, key),
                     {"all directions alike": even})
            for figure, key, even in (("effective dimensionality", "effective_dimensionality", float(H)),
                                      ("mean cosine of tokens", "mean_cosine", 0.0),
                                      ("variance along one direction", "top_component", 1 / H))]
    return Measured(rows, {whose: found[0][whose]["geometry"] for whose in ("model", "random_init")},
                    [f"The details are of the first sample: {found[0]['tokens_compared']:,} tokens."])


def stability(context: Context) -> Measured:
    """How much of a sentence's vector is left when the sentence is changed a little."""
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
            rows.append(Row(f"kept after: {name}", _kept(reports[0], name), {"another sentence": 0.0, "the same": 1.0},
                            _kept(reports[1], name), NUMBER, f"{of.changed:,} changed sentences"))
    return Measured(rows, {"model": reports[0].to_dict(), "random_init": reports[1].to_dict()}, [
        "What is kept of a sentence's vector in the last layer: (cosine - baseline) / (1 - baseline), the baseline "
        "being the cosine of unrelated sentences. Intervals are over three seeds of the change."])


def _kept(report: StabilityReport, name: str) -> Interval:
    layer = list(report.baseline)[-1]
    base, cosine = report.baseline[layer].sentences, report.perturbations[name].layers[layer].sentence
    mean, low, high = (None if value is None else kept(value, base) for value in (cosine.mean, cosine.low, cosine.high))
    return Interval(0.0, None, None, 1) if mean is None else Interval(mean, low, high, cosine.values)


def composition(context: Context) -> Measured:
    """Negation, word order, phrases: does meaning come from the parts?"""
    found = measure_compositional_understanding(context.model, context.tokenizer, seed=context.seed)
    rows = []
    for name, of in found.categories.items():
        baselines: dict[str, Any] = {"chance": of.chance} | ({} if of.control is None else {"control": of.control})
        rows.append(Row(name, of.score, baselines, of.random_init, sample=f"{of.cases:,} cases"))
    notes = [f"Left out: {name}: {reason}" for name, reason in found.left_out.items()]
    notes += [f"{name}: left out, as their words are not one piece of the vocabulary: {', '.join(of.left_out)}."
              for name, of in found.categories.items() if of.left_out]
    return Measured(rows, found.to_dict(), notes)

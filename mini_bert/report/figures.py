"""Figures of models and runs: `analysis` and `evaluation` compute, `plots` draws."""

from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .. import plots
from ..analysis.doctor.baseline_losses import baseline_losses
from ..analysis.doctor.reference import reference_curve
from ..analysis.doctor.run_record import RunRecord, Unavailable
from ..analysis.dynamics.gradient_flow import analyze_gradient_flow
from ..analysis.dynamics.loss_landscape import analyze_loss_landscape
from ..analysis.dynamics.weight_evolution import track_weight_changes, weight_spectrum
from ..analysis.timeline.record import read_timeline
from ..core.arrays import Array
from ..core.cache import of_every_layer
from ..core.model import MiniBERT
from ..errors import DataError, InputError
from ..evaluation.formats.lines import line_error, numbered_lines
from ..evaluation.representations.geometry import compute_layer_similarity, layer_states
from ..inference.embed import embed
from ..inference.inputs import pad_sequences, require_vocabulary
from ..plots import Picture
from ..readers import read_json
from ..text.batches import MLMBatch
from ..text.masking import Masking
from ..text.opening import load_tokenizer
from ..text.tokenizer import Tokenizer

_MOST_LINES = 7               # one per colour


# -------------------------------------------------------------------- a model on a text

def create_attention_heatmap(model: MiniBERT, text: str, layer: int = 0, head: int = 0,
                             tokenizer: Tokenizer | None = None) -> Picture:
    """The attention of one head on a text: queries in rows, keys in columns.

    The default tokenizer is that of the shipped model `mini`.
    """
    weights, tokens = attention_on(model, tokenizer or load_tokenizer("mini"), text)
    L, A = weights.shape[:2]
    for name, number, count in (("layer", layer, L), ("head", head, A)):
        if not 0 <= number < count:
            raise InputError(f"There is no {name} {number}; this model has {name}s 0 to {count - 1}.")
    return plots.visualize_attention_patterns(weights, tokens, layer, head)


def attention_overview(model: MiniBERT, tokenizer: Tokenizer, text: str) -> Picture:
    """The attention of all heads of all layers on a text."""
    return plots.plot_attention_grid(*attention_on(model, tokenizer, text))


def attention_on(model: MiniBERT, tokenizer: Tokenizer, text: str) -> tuple[Array, list[str]]:
    """Attention weights (L, A, T, T) on a text, truncated to the model's maximum length, and its tokens."""
    require_vocabulary(model, tokenizer)
    ids = tokenizer.encode(text, max_length=model.config.max_seq_length)
    _, cache = model.encode(np.array([ids]), None)
    weights = of_every_layer(cache, "attention_weights", model.config.num_layers)
    return np.stack([layer[0] for layer in weights]), [tokenizer.vocabulary[i] for i in ids]


def gradient_flow(model: MiniBERT, tokenizer: Tokenizer, text: str) -> Picture:
    """The norm of the loss gradient at each layer's output, with 15 % of the text's words masked."""
    found = analyze_gradient_flow(model, tokenizer, text)
    return plots.plot_gradient_flow({"embeddings": found.layers[0].at_input} |
                              {f"hidden_{layer.layer}": layer.at_output for layer in found.layers})


def layer_similarity(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str]) -> Picture:
    """The similarity of the layers on some texts, by debiased linear CKA."""
    require_vocabulary(model, tokenizer)
    ids, mask = _rows(model, tokenizer, texts)
    _, cache = model.encode(ids, mask)
    states = layer_states(cache)
    return plots.plot_layer_similarity(compute_layer_similarity(list(states.values()), mask), list(states))


def sentence_projection(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str], method: str = "pca",
                        seed: int = 0) -> Picture:
    """Sentence vectors, projected into the plane."""
    return plots.plot_embedding_projection(embed(model, tokenizer, list(texts)), [_short(text) for text in texts],
                                     method=method, seed=seed)


def landscape(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str], *, plane: bool = False,
              points: int = 21, seed: int = 0) -> Picture:
    """The loss on texts with 15 % masked, along one random direction or over the plane of two."""
    require_vocabulary(model, tokenizer)
    ids, mask = _rows(model, tokenizer, texts)
    masked, positions = Masking()(ids, tokenizer.vocabulary, seed=seed, epoch=0, sequences=np.arange(len(ids)))
    steps = np.linspace(-1, 1, points)
    found = analyze_loss_landscape(model, MLMBatch(masked, ids, positions, mask), alphas=steps,
                                   betas=steps if plane else None, seed=seed)
    return plots.plot_loss_landscape(found.alphas, found.losses, found.betas)


def weight_spectra(model: MiniBERT, layer: int | None = None) -> Picture:
    """Singular values of the matrices of a layer, or of the last matrix of attention in every layer."""
    matrices = {name: spec for name, spec in model.params.specs.items() if len(spec.shape) == 2}
    last = {spec.layer: name for name, spec in matrices.items() if spec.component == "attention"}
    names = list(last.values()) if layer is None else [name for name, spec in matrices.items() if spec.layer == layer]
    if layer is None and not names:
        raise InputError("This model has no matrices of attention; name a layer.")
    if not names:
        raise InputError(f"There is no layer {layer}; this model has layers 0 to {model.config.num_layers - 1}.")
    return plots.plot_spectrum({name: weight_spectrum(model.params[name]).singular_values.tolist() for name in names})


# -------------------------------------------------------------------- a run

def training_curves(run: str | PathLike[str], corpus: str | PathLike[str] | None = None) -> Picture:
    """A run's losses, the baselines on the same text, and the reference curve if there is one.

    `corpus` is the corpus directory, if it has moved since the run.
    """
    record = RunRecord.read(run, corpus)
    if corpus is not None:
        record.require_corpus()
    if not record.records:
        raise InputError(record.notes[-1])
    tokens = [curve.tokens[-1] for curve in (record.training_curve, record.heldout_curve) if len(curve)]
    try:
        reference = reference_curve(record).until(max(tokens, default=0.0)).to_dict()
    except Unavailable:
        reference = None
    return plots.plot_training_curves(record.records, baseline_losses(record).levels(), reference)


def weight_evolution(run: str | PathLike[str]) -> Picture:
    """The relative distance of the fastest parameters from the first checkpoint kept."""
    found = track_weight_changes(RunRecord.read(run).directory, ranks=False)      # `run` may be a fit
    if len(found.steps) < 2:
        raise InputError(f"{run} has only one checkpoint; this figure compares two or more "
                         "(set training.keep_checkpoints).")
    return plots.plot_weight_evolution(found.steps, {name: found.changes[name].from_first
                                               for name in found.fastest[:_MOST_LINES]},
                                 "|W - W first| / |W first|")


def timeline(place: str | PathLike[str]) -> Picture:
    """What each snapshot of a run knows, from timeline.json in the run's directory or from a file."""
    found = read_timeline(place)
    if not found.steps or not any(panel.lines for panel in found.panels):
        raise DataError(f"{place} has no figures to draw.")
    return plots.plot_timeline(found.to_dict())


# -------------------------------------------------------------------- results of other commands

def probe_accuracy(path: Path) -> Picture:
    """The output of `mini-bert probe pos|deplabel|ner --json`: accuracy by layer, with baselines."""
    try:
        found = read_json(path, DataError)
        rows = [row for row in found["rows"] if row["probe"] == "linear"]
        half = [_half(row["accuracy"]) for row in rows]
        return plots.plot_probe_accuracy(
            [row["layer"] for row in rows],
            {"model": [row["accuracy"]["mean"] for row in rows], "random init": [row["random"]["mean"] for row in rows],
             "control task": [row["control"]["mean"] for row in rows]}, {"model": half},
            {name: figures["accuracy"] for name, figures in found["baselines"].items() if "lowercase" not in name})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not the output of mini-bert probe pos, deplabel or ner with --json ({error}).") \
            from None


def confusion(path: Path) -> Picture:
    """A confusion matrix from lines of the form TRUE<tab>PREDICTED."""
    counts: Counter[tuple[str, str]] = Counter()
    for number, text in numbered_lines(path):
        parts = text.split("\t")
        if len(parts) != 2:
            raise line_error(path, number, "expected a true and a predicted label, separated by a tab")
        counts[parts[0], parts[1]] += 1
    if not counts:
        raise DataError(f"{path} has no labels.")
    labels = sorted({label for pair in counts for label in pair})
    return plots.plot_confusion_matrix([[counts[a, b] for b in labels] for a in labels], labels)


def _half(interval: Mapping[str, float]) -> float:
    return max(0.0, (interval.get("high", interval["mean"]) - interval.get("low", interval["mean"])) / 2)


def _rows(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Any, Any]:
    return pad_sequences([tokenizer.encode(text, max_length=model.config.max_seq_length) for text in texts],
                  tokenizer.vocabulary.pad)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"

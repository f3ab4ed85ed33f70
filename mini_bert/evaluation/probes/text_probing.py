"""The probe of whole texts: what a linear classifier can read from the mean vector of a text, layer by layer.

The model stays as it is; a text longer than it reads at once has the mean of its windows' vectors. Baselines: the
majority label, a bag of words, and the same probe on an untrained model, one for each seed. The best layer is chosen on
the development set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from ...core.arrays import Array, IntArray
from ...core.cache import Cache
from ...core.model import MiniBERT
from ...errors import DataError, InputError
from ...inference.inputs import require_vocabulary
from ...inference.ragged import read
from ...inference.windows import mean_of_windows
from ...text.tokenizer import Tokenizer
from ...workers import Workers, workers
from ..formats.tables import Labelled
from ..samples import sampled, set_aside
from ..statistics import Interval, over_seeds
from ..tasks.encode import Encoded, encode_texts, label_numbers
from ..tasks.texts.bag_of_words import bag_of_words_accuracy
from ..tasks.texts.classes import require_classes
from .classifier import Scaling, train_classifier
from .probing import ProbeOptions, ProbeProgress
from .sets import DEV_SHARE, MAX_BYTES
from .word_vectors import chosen_layers


@dataclass(frozen=True)
class TextProbeRow:
    """The scores of one probe on one layer: accuracy."""

    layer: str
    probe: str                                    # linear or mlp
    dev: Interval
    accuracy: Interval
    random_dev: Interval
    random: Interval                              # of the same probe on untrained models

    def to_dict(self) -> dict[str, Any]:
        return {name: value._asdict() if isinstance(value, Interval) else value for name, value in vars(self).items()}


def probe_texts(model: MiniBERT, tokenizer: Tokenizer, train: Sequence[Labelled], test: Sequence[Labelled],
                dev: Sequence[Labelled] | None = None, options: ProbeOptions | None = None,
                progress: ProbeProgress | None = None) -> dict[str, Any]:
    """Probe every layer for one label per text. Without `dev`, a tenth of `train` is set aside for it; max_samples
    limits both."""
    options = options or ProbeOptions()
    if options.seeds < 1:
        raise InputError(f"seeds must be at least 1, not {options.seeds}.")
    require_vocabulary(model, tokenizer)
    layers = chosen_layers(model, options.layers)
    records, notes = _sets(train, test, dev, options)
    labels = sorted({record.label for record in train})
    if len(labels) < 2:
        raise DataError(f"The training set has only the label {labels[0]!r}, so there is nothing to learn.")
    y = {split: np.array(label_numbers([record.label for record in some], labels, f"The {split} set"))
         for split, some in records.items()}
    encoded = {split: encode_texts(some, tokenizer, model.config.max_seq_length, [],
                                   with_types=model.config.token_types > 1) for split, some in records.items()}
    for split, made in encoded.items():
        if made.split:
            notes.append(f"{split}: {made.split:,} texts are longer than the model reads at once and were windowed")
    size = sum(map(len, records.values())) * len(layers) * model.config.hidden_size * 4
    if size > MAX_BYTES:
        raise DataError(f"The vectors of all texts at {len(layers)} layers take {size / 1e9:.2f} GB; use fewer texts "
                        "(max_samples) or fewer layers.")
    say = progress or (lambda what, done, total: None)
    probes, seeds = ("linear", "mlp") if options.mlp else ("linear",), range(options.seed, options.seed + options.seeds)

    def run(team: Workers, network: MiniBERT, what: str, for_seeds: Sequence[int]) -> dict[Any, tuple[float, float]]:
        x = _vectors(network, encoded, layers, team, lambda done, of: say(f"{what}: vectors", done, of))
        jobs = [(layer, probe, seed) for layer in layers for probe in probes for seed in for_seeds]
        done: list[int] = []

        def one(job: tuple[str, str, int]) -> tuple[float, float]:
            layer, probe, seed = job
            made = train_classifier([x["train"][layer]], y["train"], [x["dev"][layer]], y["dev"], len(labels),
                                    recipe=options.recipe, seed=seed, hidden=options.hidden if probe == "mlp" else 0)
            done.append(1)
            say(f"{what}: probes", len(done), len(jobs))
            return made.dev_accuracy, float((made.classifier.predict([x["test"][layer]]) == y["test"]).mean())

        return dict(zip(jobs, team.map(one, jobs), strict=True))

    with workers(options.threads) as team:
        ours = run(team, model, "model", seeds)
        untrained: dict[Any, tuple[float, float]] = {}
        for seed in seeds:
            untrained |= run(team, MiniBERT(model.config, seed=seed), f"random init {seed}", [seed])
    rows = [TextProbeRow(layer, probe, *(over_seeds([found[layer, probe, seed][which] for seed in seeds])
                                         for found in (ours, untrained) for which in (0, 1)))
            for probe in probes for layer in layers]
    majority = int(np.bincount(y["train"]).argmax())
    baselines = {"majority": {"accuracy": float((y["test"] == majority).mean())},
                 "bag of words": {"accuracy": bag_of_words_accuracy(records["train"], records["dev"], labels,
                                                                    records["test"])}}
    return {"task": "texts", "figure": "accuracy", "labels": len(labels), "seeds": options.seeds,
            "sets": {split: {"texts": len(some)} for split, some in records.items()}, "baselines": baselines,
            "rows": [row.to_dict() for row in rows], "verdict": _verdict(rows, baselines), "notes": notes}


def _sets(train: Sequence[Labelled], test: Sequence[Labelled], dev: Sequence[Labelled] | None,
          options: ProbeOptions) -> tuple[dict[str, list[Labelled]], list[str]]:
    require_classes(train, "The training set")
    given, notes = list(train), []
    if dev is None:
        there = set(set_aside([(record.text, record.pair) for record in given], [record.label for record in given],
                              DEV_SHARE, options.seed, "probe dev"))
        dev = [given[i] for i in sorted(there)]
        given = [record for i, record in enumerate(given) if i not in there]
        notes.append(f"dev: {len(dev):,} texts of the training set serve as the development set")
    sets = {split: sampled(some, options.max_samples, options.seed, "probe sample", split)
            for split, some in (("train", given), ("dev", dev))}
    for split, whole in (("train", given), ("dev", dev)):
        if len(sets[split]) < len(whole):
            notes.append(f"{split}: {len(sets[split]):,} of {len(whole):,} texts were drawn")
    return {**sets, "test": list(test)}, notes


def _vectors(model: MiniBERT, encoded: dict[str, Encoded], layers: Sequence[str], team: Workers,
             progress: Callable[[int, int], None]) -> dict[str, dict[str, Array]]:
    """split -> layer -> (N, H), with mean zero and deviation one on the training set."""
    found: dict[str, dict[str, Array]] = {}
    total, done, lock = sum(len(made.rows) for made in encoded.values()), 0, Lock()
    for split, made in encoded.items():
        rows = {layer: np.zeros((len(made.rows), model.config.hidden_size), np.float32) for layer in layers}

        def use(numbers: IntArray, hidden: Array, cache: Cache, rows: dict[str, Array] = rows) -> None:
            nonlocal done
            for layer, whole in rows.items():
                whole[numbers] = cache[layer].reshape(hidden.shape).mean(axis=1)
            with lock:
                done += len(numbers)
                progress(done, total)

        read(model, made.rows, use, types=made.types, team=team)
        found[split] = {layer: mean_of_windows(whole, made.owners, made.weights) for layer, whole in rows.items()}
    for layer in layers:
        scaling = Scaling.of(found["train"][layer])
        for split in found:
            scaling.apply(found[split][layer])
    return found


def _verdict(rows: Sequence[TextProbeRow], baselines: dict[str, dict[str, float]]) -> dict[str, Any]:
    """The linear probe's best layer by the development set, against the baselines."""
    linear = [row for row in rows if row.probe == "linear"]
    best, chance = max(linear, key=lambda row: row.dev.mean), max(linear, key=lambda row: row.random_dev.mean)
    words, score = baselines["bag of words"]["accuracy"], best.accuracy.mean
    return {"layer": best.layer, "figure": "accuracy", "score": score, "bag_of_words": words,
            "random": chance.random.mean, "random_layer": chance.layer, "above_bag_of_words": score - words,
            "above_random": score - chance.random.mean}

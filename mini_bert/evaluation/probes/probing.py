"""Probes: what a simple classifier can read from a model's word vectors, with the baselines that it has to beat.

Majority: the most frequent label. Memory: the most frequent label of the word in training. Random init: the same
probe on an untrained model of the same shape, one for each seed. Control task (Hewitt and Liang, 2019): each word
type gets a random label; a probe that is good at this memorises words, and its selectivity, accuracy minus control
accuracy, is low. The best layer is chosen on the development set.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import IntArray
from ...core.model import MiniBERT
from ...errors import DataError, InputError
from ...randomness import generator
from ...text.tokenizer import Tokenizer
from ...workers import Workers, workers
from ..built_in import built_in_minimal_pairs
from ..formats.conllu import Sentence
from ..model_tokenizer import model_tokenizer
from ..statistics import Interval, over_seeds
from ..tasks.bio import entity_f1
from ..zero_shot.minimal_pairs import minimal_pairs
from .classifier import Features, Recipe, TrainedClassifier, train_classifier
from .quantised_vectors import QuantisedVectors
from .sets import SPLITS, ProbeSets, probe_sets
from .structural import probe_dependencies
from .word_vectors import chosen_layers

MIX = "mix"
ProbeProgress = Callable[[str, int, int], None]       # what is being done, how many are done, of how many


def _universal(sentence: Sentence) -> tuple[str, ...] | None:
    """Relations without language-specific subtypes: nsubj:pass becomes nsubj."""
    return None if sentence.relations is None else tuple(name.split(":")[0] for name in sentence.relations)


class LabelTask(NamedTuple):
    """A task with one label per word: how to get the labels, what they are called, and the main metric."""

    labels: Callable[[Sentence], tuple[str, ...] | None]
    source: str
    figure: str


LABEL_TASKS = {"pos": LabelTask(lambda sentence: sentence.upos, "UPOS tags", "accuracy"),
               "deplabel": LabelTask(_universal, "dependency relations", "accuracy"),
               "ner": LabelTask(lambda sentence: sentence.entities, "named entities", "f1")}
TASKS = ("pos", "dep", "deplabel", "ner")


@dataclass(frozen=True)
class ProbeOptions:
    """The options of a probe."""

    layers: tuple[str, ...] | None = None         # None: all of them, and their mix
    mlp: bool = False                             # also probe with a hidden layer
    hidden: int = 64
    seeds: int = 3
    seed: int = 0
    max_samples: int | None = None
    pooling: str | None = None                    # of a word's pieces; default: ends for labels, mean for trees
    threads: int = 0
    recipe: Recipe = field(default_factory=Recipe)
    rank: int = 64                                # of the structural probe
    rank_curve: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class ProbeRow:
    """The scores of one probe on one layer; `f1` counts entities with exact spans."""

    layer: str
    probe: str                                    # linear or mlp
    dev: Interval                                 # the main metric on the development set
    accuracy: Interval
    control: Interval
    selectivity: Interval
    random_dev: Interval
    random: Interval                              # accuracy of the same probe on untrained models
    f1: Interval | None = None
    random_f1: Interval | None = None
    mix: list[float] | None = None                # weight of each layer

    def to_dict(self) -> dict[str, Any]:
        return {name: value._asdict() if isinstance(value, Interval) else value
                for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class ProbeReport:
    """All probes of a task, with the baselines and a verdict."""

    task: str
    figure: str
    labels: int
    sets: dict[str, dict[str, int]]
    baselines: dict[str, dict[str, float]]
    rows: list[ProbeRow]
    notes: list[str]
    seeds: int

    def score(self, row: ProbeRow) -> Interval:
        return row.f1 if self.figure == "f1" and row.f1 is not None else row.accuracy

    def verdict(self) -> dict[str, Any]:
        """The linear probe's best single layer by the development set, against the strongest baseline of each kind.

        The score of the learned mix is given separately.
        """
        linear = [row for row in self.rows if row.probe == "linear" and row.layer != MIX]
        mix = [self.score(row).mean for row in self.rows if row.probe == "linear" and row.layer == MIX]
        best, chance = max(linear, key=lambda row: row.dev.mean), max(linear, key=lambda row: row.random_dev.mean)
        untrained = chance.random_f1 if self.figure == "f1" and chance.random_f1 is not None else chance.random
        memory = max(figures[self.figure] for name, figures in self.baselines.items() if "memory" in name)
        score = self.score(best).mean
        return {"layer": best.layer, "figure": self.figure, "score": score, "memory": memory,
                "random": untrained.mean, "random_layer": chance.layer, "selectivity": best.selectivity.mean,
                "above_memory": score - memory, "above_random": score - untrained.mean,
                "mix": mix[0] if mix else None}

    def to_dict(self) -> dict[str, Any]:
        return {"task": self.task, "figure": self.figure, "labels": self.labels, "seeds": self.seeds,
                "sets": self.sets, "baselines": self.baselines, "rows": [row.to_dict() for row in self.rows],
                "verdict": self.verdict(), "notes": self.notes}


# ---------------------------------------------------------------- labels and metrics


@dataclass(frozen=True)
class LabelledWords:
    """The words and labels of each split in reading order; the id of a label that is not in training is -1."""

    names: list[str]
    words: dict[str, list[str]]
    gold: dict[str, list[str]]
    ids: dict[str, IntArray]
    offsets: dict[str, IntArray]
    notes: list[str]


def labelled_words(task: LabelTask, sets: ProbeSets) -> LabelledWords:
    """The labels of all splits; refused where a sentence has none, or where all are the same."""
    words: dict[str, list[str]] = {}
    gold: dict[str, list[str]] = {}
    for split in SPLITS:
        labels = [task.labels(sentence) for sentence in sets.sentences[split]]
        if missing := sum(label is None for label in labels):
            raise DataError(f"{missing:,} of {len(labels):,} sentences of the {split} set have no {task.source}.")
        words[split] = [word for sentence in sets.sentences[split] for word in sentence.words]
        gold[split] = [label for sentence in labels for label in sentence or ()]
    names = [name for name, _ in Counter(gold["train"]).most_common()]
    if len(names) < 2:
        raise DataError(f"All {task.source} of the training set are {names[0]!r}, so there is nothing to learn.")
    number = {name: i for i, name in enumerate(names)}
    notes = []
    for split in ("dev", "test"):
        if unseen := Counter(label for label in gold[split] if label not in number):
            notes.append(f"{split}: {sum(unseen.values()):,} words have labels that are not in training, and count as "
                         f"wrong: {', '.join(sorted(unseen))}")
    ids = {split: np.array([number.get(label, -1) for label in gold[split]]) for split in SPLITS}
    return LabelledWords(names, words, gold, ids, {split: sets.alignments[split].offsets for split in SPLITS}, notes)


def _figures(task: LabelTask, data: LabelledWords, split: str, predicted: IntArray) -> dict[str, float]:
    figures = {"accuracy": float((predicted == data.ids[split]).mean())}
    if task.figure == "f1":
        bounds = data.offsets[split].tolist()
        names = [data.names[i] for i in predicted.tolist()]
        spans = [slice(a, b) for a, b in pairwise(bounds)]
        figures["f1"] = entity_f1([data.gold[split][s] for s in spans], [names[s] for s in spans])
    return figures


def word_memory(words: Sequence[str], labels: IntArray, asked: Sequence[str]) -> IntArray:
    """The most frequent training label of each word in `asked`; the overall most frequent label for an unseen word."""
    counts: dict[str, Counter[int]] = {}
    for word, label in zip(words, labels.tolist(), strict=True):
        counts.setdefault(word, Counter())[label] += 1
    most = {word: counter.most_common(1)[0][0] for word, counter in counts.items()}
    majority = int(np.bincount(labels).argmax())
    return np.array([most.get(word, majority) for word in asked])


def control_labels(words: Mapping[str, Sequence[str]], labels: IntArray, classes: int,
                   seed: int) -> dict[str, IntArray]:
    """The control task: a random label for each word type, drawn from the label distribution in training."""
    types = sorted({word for split in words.values() for word in split})
    share = np.bincount(labels, minlength=classes) / len(labels)
    drawn = generator(seed, "control task").choice(classes, len(types), p=share)
    number = dict(zip(types, drawn.tolist(), strict=True))
    return {split: np.array([number[word] for word in there]) for split, there in words.items()}


# ---------------------------------------------------------------- the probes


class _Job(NamedTuple):
    layer: str
    probe: str
    target: str                   # task or control
    seed: int


class _Outcome(NamedTuple):
    dev: float
    test: dict[str, float]
    mix: list[float]


def probe_labels(model: MiniBERT, tokenizer: Tokenizer, task: str, train: Sequence[Sentence],
                 test: Sequence[Sentence], dev: Sequence[Sentence] | None = None, options: ProbeOptions | None = None,
                 progress: ProbeProgress | None = None) -> ProbeReport:
    """Probe every layer, and a learned mix of them, for the labels of a task: pos, deplabel or ner."""
    options = options or ProbeOptions()
    if task not in LABEL_TASKS:
        raise InputError(f"There is no task {task!r} with one label per word; choose one of {', '.join(LABEL_TASKS)}.")
    if options.seeds < 1:
        raise InputError(f"seeds must be at least 1, not {options.seeds}.")
    chosen_layers(model, options.layers)              # refuse an unknown layer before anything is computed
    kind, seeds = LABEL_TASKS[task], range(options.seed, options.seed + options.seeds)
    sets = probe_sets(model, tokenizer, train, test, dev, max_samples=options.max_samples, seed=options.seed)
    data, pooling = labelled_words(kind, sets), options.pooling or "ends"
    notes = sets.notes + data.notes
    lowered = {split: [word.lower() for word in words] for split, words in data.words.items()}
    types = lowered if tokenizer.lowercase else data.words        # words that the model can distinguish
    controls = {seed: control_labels(types, data.ids["train"], len(data.names), seed) for seed in seeds}
    baselines = {"majority": _figures(kind, data, "test", np.zeros(len(data.ids["test"]), np.int64)),
                 **{name: _figures(kind, data, "test", word_memory(words["train"], data.ids["train"], words["test"]))
                    for name, words in (("word-type memory", data.words), ("word-type memory, lowercase", lowered))}}
    probes = ("linear", "mlp") if options.mlp else ("linear",)

    groups = sets.layer_groups(model, options.layers, pooling=pooling)
    if len(groups) > 1:
        notes.append(f"the mix of layers was left out: the vectors of {sum(map(len, groups))} layers do not fit into "
                     f"{sets.max_bytes / 1e9:.1f} GB together, so at most {len(groups[0])} layers were held at a time")

    def run(team: Workers, network: MiniBERT, what: str, targets: Sequence[str],
            for_seeds: Sequence[int]) -> dict[_Job, _Outcome]:
        say = progress or (lambda what, done, total: None)
        found: dict[_Job, _Outcome] = {}
        total = len(chosen_layers(model, options.layers))
        total = (total + (len(groups) == 1 < total)) * len(probes) * len(targets) * len(for_seeds)

        def run_group(held: dict[str, dict[str, QuantisedVectors]]) -> None:
            chosen = {name: [name] for name in held}
            if len(groups) == 1 and len(held) > 1:
                chosen[MIX] = list(held)
            # mixes take longest, so they go first
            jobs = [_Job(name, probe, target, seed) for name in reversed(chosen) for probe in probes
                    for target in targets for seed in for_seeds]

            def one(job: _Job) -> None:
                x: dict[str, Features] = {split: [held[name][split] for name in chosen[job.layer]] for split in SPLITS}
                y = data.ids if job.target == "task" else controls[job.seed]
                made = train_classifier(x["train"], y["train"], x["dev"], y["dev"], len(data.names),
                                        recipe=options.recipe, seed=job.seed,
                                        hidden=options.hidden if job.probe == "mlp" else 0)
                found[job] = _outcome(kind, data, job.target, made, x, y["test"])
                say(f"{what}: probes", len(found), total)

            team.map(one, jobs)

        sets.each_group(network, tokenizer, groups, run_group, pooling=pooling, centred=True, team=team,
                        progress=lambda done, total: say(f"{what}: vectors", done, total))
        return found

    with workers(options.threads) as team:
        ours = run(team, model, "model", ("task", "control"), seeds)
        untrained: dict[_Job, _Outcome] = {}
        for seed in seeds:                # one untrained model in memory at a time
            untrained |= run(team, MiniBERT(model.config, seed=seed), f"random init {seed}", ("task",), [seed])
    rows = [_row(kind, ours, untrained, layer, probe, seeds) for probe in probes
            for layer in [*chosen_layers(model, options.layers), MIX]
            if _Job(layer, probe, "task", seeds[0]) in ours]
    return ProbeReport(task, kind.figure, len(data.names), sets.to_dict(), baselines, rows, notes, options.seeds)


def _outcome(task: LabelTask, data: LabelledWords, target: str, made: TrainedClassifier, x: Mapping[str, Features],
             gold: IntArray) -> _Outcome:
    predicted, mix = made.classifier.predict(x["test"]), made.classifier.mix()
    if target == "control":
        return _Outcome(made.dev_accuracy, {"accuracy": float((predicted == gold).mean())}, mix)
    dev = _figures(task, data, "dev", made.classifier.predict(x["dev"]))[task.figure]
    return _Outcome(dev, _figures(task, data, "test", predicted), mix)


def _row(task: LabelTask, ours: Mapping[_Job, _Outcome], untrained: Mapping[_Job, _Outcome], layer: str, probe: str,
         seeds: Sequence[int]) -> ProbeRow:
    found, control, random = ([source[_Job(layer, probe, target, seed)] for seed in seeds]
                              for source, target in ((ours, "task"), (ours, "control"), (untrained, "task")))

    def each(outcomes: Sequence[_Outcome], figure: str = "accuracy") -> Interval:
        return over_seeds([outcome.test[figure] for outcome in outcomes])

    selectivity = over_seeds([a.test["accuracy"] - b.test["accuracy"] for a, b in zip(found, control, strict=True)])
    entities = task.figure == "f1"
    return ProbeRow(layer, probe, over_seeds([outcome.dev for outcome in found]), each(found), each(control),
                    selectivity, over_seeds([outcome.dev for outcome in random]), each(random),
                    each(found, "f1") if entities else None, each(random, "f1") if entities else None,
                    np.mean([outcome.mix for outcome in found], axis=0).tolist() if layer == MIX else None)


# ---------------------------------------------------------------- several tasks


class ProbeData(NamedTuple):
    """The sentences of a task; without `dev`, a tenth of `train` is used to stop and to choose the layer."""

    train: Sequence[Sentence]
    test: Sequence[Sentence]
    dev: Sequence[Sentence] | None = None


def probe(model: MiniBERT, tokenizer: Tokenizer, task: str, data: ProbeData,
          options: ProbeOptions | None = None, progress: ProbeProgress | None = None) -> dict[str, Any]:
    """Run one of TASKS; the result is plain data for JSON."""
    options = options or ProbeOptions()
    if task == "dep":
        return probe_dependencies(model, tokenizer, *data, layers=options.layers, seeds=options.seeds,
                                  seed=options.seed, max_samples=options.max_samples, threads=options.threads,
                                  rank=options.rank, rank_curve=options.rank_curve, pooling=options.pooling or "mean",
                                  progress=progress).to_dict()
    return probe_labels(model, tokenizer, task, *data, options=options, progress=progress).to_dict()


def analyze_linguistic_probes(model: MiniBERT, probe_tasks: Mapping[str, ProbeData],
                              tokenizer: Tokenizer | None = None, options: ProbeOptions | None = None,
                              progress: ProbeProgress | None = None) -> dict[str, dict[str, Any]]:
    """Probe the model for each task (pos, dep, deplabel, ner) on its data, with baselines.

    The tokenizer is by default that of the loaded model.
    """
    if not isinstance(probe_tasks, Mapping) or not all(isinstance(data, tuple) for data in probe_tasks.values()):
        raise InputError('probe_tasks must map each task to its sentences, such as {"pos": ProbeData(train, test)}; '
                         "read_conllu reads them from a treebank.")
    if unknown := [task for task in probe_tasks if task not in TASKS]:
        raise InputError(f"There is no task {unknown[0]!r} to probe; choose some of {', '.join(TASKS)}.")
    tokenizer = model_tokenizer(model, tokenizer)
    return {task: probe(model, tokenizer, task, ProbeData(*data), options, progress)
            for task, data in probe_tasks.items()}


def probe_syntactic_knowledge(model: MiniBERT, tokenizer: Tokenizer | None = None,
                              train: Sequence[Sentence] | None = None, test: Sequence[Sentence] | None = None,
                              dev: Sequence[Sentence] | None = None,
                              options: ProbeOptions | None = None) -> dict[str, dict[str, Any]]:
    """Probe for parts of speech, dependency relations and trees, if a treebank is given as `train` and `test`.

    Without one, the built-in minimal pairs are scored: agreement of verbs, determiners and reflexives. The tokenizer
    is by default that of the loaded model.
    """
    tokenizer, options = model_tokenizer(model, tokenizer), options or ProbeOptions()
    if train is None and test is None:
        found = minimal_pairs(model, tokenizer, built_in_minimal_pairs(), max_samples=options.max_samples,
                              seed=options.seed, threads=options.threads)
        return {"minimal_pairs": found.to_dict()}
    if train is None or test is None:
        raise InputError("A treebank needs sentences to train on and to test on; give both train and test, or neither.")
    data = ProbeData(train, test, dev)
    return analyze_linguistic_probes(model, {"pos": data, "deplabel": data, "dep": data}, tokenizer, options)

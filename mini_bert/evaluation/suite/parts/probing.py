"""Probes of all layers: parts of speech, dependency relations, trees, named entities."""

from collections.abc import Sequence
from typing import Any

from ....errors import DataError
from ...formats.conllu import Sentence
from ...probes.classifier import Recipe
from ...probes.probing import ProbeOptions, probe_labels
from ...probes.structural import StructuralRecipe, probe_dependencies
from ...probes.trees import PUNCTUATION
from ...probes.word_vectors import EMBEDDINGS
from ...samples import sampled
from ...statistics import Interval
from ...tasks.folder import Splits
from ..context import EvaluationContext
from ..rows import HIGHER, Figure, PartResult, SummaryRow, interval_note, with_interval


def _sets(context: EvaluationContext, files: Splits | None) -> dict[str, Any]:
    """The sets of a probe; the test set has no more sentences than the sizes of the evaluation allow."""
    assert files is not None
    test = sampled(context.sentences(files.test), context.sizes.sentences, context.seed, "probe sample", "test")
    return {"train": context.sentences(files.train), "test": test,
            "dev": None if files.dev is None else context.sentences(files.dev)}


def labels(context: EvaluationContext, task: str) -> PartResult:
    """One label per word: pos, deplabel or ner."""
    files = context.tasks.entities if task == "ner" else context.tasks.treebank
    sets = _sets(context, files)
    if task == "ner" and not any(sentence.entities for sentence in sets["train"]):
        raise DataError(f"{files and files.train} has no named entities.")
    sizes = context.sizes
    found = probe_labels(
        context.model, context.tokenizer, task, **sets, progress=context.report,
        options=ProbeOptions(mlp=sizes.mlp, seeds=sizes.probe_seeds, seed=context.seed, max_samples=sizes.sentences,
                             threads=context.threads, recipe=Recipe(max_epochs=sizes.probe_epochs))).to_dict()
    verdict = found["verdict"]
    linear = {row["layer"]: row for row in found["rows"] if row["probe"] == "linear"}
    best, untrained = linear[verdict["layer"]], linear[verdict["random_layer"]]
    figure, words = verdict["figure"], found["sets"]["test"]["words"]
    baselines: dict[str, Figure] = {"majority": found["baselines"]["majority"][figure],
                                    "word-type memory": verdict["memory"]}
    if figure == "accuracy":
        baselines["control task"] = with_interval(best["control"], words)
        name, trials, scores = "accuracy", words, (best["accuracy"], untrained["random"])
    else:
        name, trials = "F1 of entities", _share_of_entities(sets["test"], words)
        scores = best["f1"], untrained["random_f1"]
    value, random = (with_interval(score, trials) for score in scores)
    rows = [SummaryRow(f"{name}, {verdict['layer']}", value, baselines, random, sample=_size(found, files),
                       better=HIGHER)]
    return PartResult(rows, found, [*found["notes"], interval_note(sizes.probe_seeds)])


def trees(context: EvaluationContext) -> PartResult:
    """The structural probe."""
    sizes, files = context.sizes, context.tasks.treebank
    sets = _sets(context, files)
    found = probe_dependencies(
        context.model, context.tokenizer, **sets, rank_curve=sizes.rank_curve, seeds=sizes.probe_seeds,
        seed=context.seed, max_samples=sizes.sentences, threads=context.threads,
        recipe=StructuralRecipe(max_epochs=sizes.probe_epochs), progress=context.report).to_dict()
    verdict = found["verdict"]
    by_layer = {row["layer"]: row for row in found["rows"]}
    tags = [tag for sentence in sets["test"] for tag in sentence.upos or ()]
    test = found["sets"]["test"]
    edges = max(1, round(test["words"] * (1 - tags.count(PUNCTUATION) / max(len(tags), 1))) - test["sentences"])

    def uuas(layer: str, whose: str = "model") -> Interval:
        return with_interval(by_layer[layer][whose]["uuas"], edges)

    baselines: dict[str, Figure] = {"linear chain": verdict["chain"]}
    if EMBEDDINGS in by_layer:
        baselines["embeddings"] = uuas(EMBEDDINGS)
    rows = [SummaryRow(f"edges right (UUAS), {verdict['layer']}", uuas(verdict["layer"]), baselines,
                       uuas(verdict["random_layer"], "random"), sample=_size(found, files), better=HIGHER)]
    return PartResult(rows, found, [*found["notes"], interval_note(sizes.probe_seeds)])


def _share_of_entities(sentences: Sequence[Sentence], words: int) -> int:
    """The approximate number of entities in this many words."""
    labels = [label for sentence in sentences for label in sentence.entities or ()]
    begun = sum(label.startswith("B-") for label in labels)
    return max(1, round(words * begun / max(len(labels), 1)))


def _size(found: dict[str, Any], files: Splits | None) -> str:
    train, test = (found["sets"][split] for split in ("train", "test"))
    return f"{files.name if files else ''}: {train['sentences']:,} sentences to train, {test['words']:,} words to test"

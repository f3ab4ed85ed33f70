"""Entries on a treebank: parts of speech and trees that a probe reads from a layer, and heads that follow relations.

Probes are trained at every snapshot, with one seed. The layer is chosen on the development set and scored on the test
set. UUAS is the share of the tree's edges in the spanning tree of the learned distances (probes/structural.py).
"""

from collections.abc import Callable, Sequence

from ...core.model import MiniBERT
from ...core.registry import register
from ...evaluation.probes.classifier import Recipe, train_classifier
from ...evaluation.probes.probing import LABEL_TASKS, labelled_words, word_memory
from ...evaluation.probes.quantised_vectors import QuantisedVectors
from ...evaluation.probes.sets import ProbeSets
from ...evaluation.probes.structural import StructuralRecipe, distance_forward, train_structural
from ...evaluation.probes.trees import Trees, by_sentence_length, edges_found, linear_chain
from ...evaluation.probes.word_vectors import EMBEDDINGS, chosen_layers
from ...evaluation.statistics import Interval, wilson_interval
from ...text.tokenizer import Tokenizer
from ...workers import Workers, workers
from ..attention.relations import RelationReport, relation_heads
from .data import TimelineData
from .entry import TimelineEntry

BEST = "best layer"
RELATIONS = ("nsubj", "obj", "obl", "nmod", "det", "amod", "case", "mark", "aux", "cop", "advmod", "conj")

_Vectors = dict[str, QuantisedVectors]                                # of one layer, by split
Score = tuple[float, Interval]                                        # on the development and on the test set


def _of_layers(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData, sets: ProbeSets, pooling: str, centred: bool,
               score: Callable[[_Vectors], Score]) -> dict[str, Score]:
    """The score of every layer's vectors."""
    found: dict[str, Score] = {}

    def run(team: Workers, vectors: dict[str, _Vectors]) -> None:
        found.update(zip(vectors, team.map(score, vectors.values()), strict=True))

    with workers(data.threads) as team:
        sets.each_group(model, tokenizer, sets.layer_groups(model, pooling=pooling), lambda vectors: run(team, vectors),
                        pooling=pooling, centred=centred, team=team, progress=lambda done, total: None)
    return {name: found[name] for name in chosen_layers(model, None)}


def _best(scores: Sequence[Score]) -> Interval:
    return max(scores, key=lambda score: score[0])[1]


# ---------------------------------------------------------------- parts of speech

def pos(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, Interval]:
    """A linear classifier on each layer."""
    sets = data.probe_sets(model, tokenizer)
    words = labelled_words(LABEL_TASKS["pos"], sets)

    def score(x: _Vectors) -> Score:
        made = train_classifier([x["train"]], words.ids["train"], [x["dev"]], words.ids["dev"], len(words.names),
                                recipe=Recipe(max_epochs=data.sizes.epochs), seed=data.seed)
        right = made.classifier.predict([x["test"]]) == words.ids["test"]
        return made.dev_accuracy, wilson_interval(int(right.sum()), len(right))

    return {BEST: _best(list(_of_layers(model, tokenizer, data, sets, "ends", True, score).values()))}


def pos_levels(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, dict[str, float]]:
    words = labelled_words(LABEL_TASKS["pos"], data.probe_sets(model, tokenizer))
    known = word_memory(words.words["train"], words.ids["train"], words.words["test"])
    return {BEST: {"memory of words": float((known == words.ids["test"]).mean())}}


# ---------------------------------------------------------------- trees

def uuas(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, Interval]:
    """The structural probe's distances, at the best layer that sees other words, and at the embeddings."""
    sets = data.probe_sets(model, tokenizer)
    trees = _trees(data, sets)
    recipe, rank = StructuralRecipe(max_epochs=data.sizes.epochs), min(data.sizes.rank, model.config.hidden_size)

    def score(x: _Vectors) -> Score:
        B = train_structural("distance", x["train"], trees["train"], x["dev"], trees["dev"], rank=rank, recipe=recipe,
                             seed=data.seed)
        shares = {split: wilson_interval(*edges_found(trees[split], [
            distance_forward(x[split][group.rows], B)[0] for group in trees[split]])) for split in ("dev", "test")}
        return shares["dev"].mean, shares["test"]

    scores = _of_layers(model, tokenizer, data, sets, "mean", False, score)
    words = scores.pop(EMBEDDINGS)
    return {BEST: _best(list(scores.values())), EMBEDDINGS: words[1]}


def uuas_levels(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, dict[str, float]]:
    chain = linear_chain(_trees(data, data.probe_sets(model, tokenizer))["test"]).uuas
    return {BEST: {"linear chain": chain}, EMBEDDINGS: {"linear chain": chain}}


def _trees(data: TimelineData, sets: ProbeSets) -> dict[str, list[Trees]]:
    return data.kept("trees", sets, lambda: {split: by_sentence_length(sentences)
                                             for split, sentences in sets.sentences.items()})


# ---------------------------------------------------------------- heads

def _heads(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> RelationReport:
    return data.kept("relations", model, lambda: relation_heads(model, tokenizer, data.sentences, seed=data.seed,
                                                                threads=data.threads))


def relations(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, Interval]:
    """The best head at each of the main relations, in its better direction."""
    found = _heads(model, tokenizer, data)
    return {name: found.best(name)[0].accuracy for name in RELATIONS if name in found.relations}


def relation_levels(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, dict[str, float]]:
    found = _heads(model, tokenizer, data)
    return {name: {"best place": found.best(name)[1].baseline.mean} for name in RELATIONS if name in found.relations}


register("timeline", "pos")(TimelineEntry(
    "Parts of speech", pos, ("treebank",), levels=pos_levels, columns={"POS": BEST}))
register("timeline", "uuas")(TimelineEntry(
    "Trees (UUAS)", uuas, ("treebank",), levels=uuas_levels, columns={"UUAS": BEST, "emb.": EMBEDDINGS}))
register("timeline", "relations")(TimelineEntry(
    "Heads and relations", relations, ("treebank",), levels=relation_levels, apart=True,
    columns={name: name for name in ("nsubj", "obj", "det")}))

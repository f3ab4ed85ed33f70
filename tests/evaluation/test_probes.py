"""Probes with their baselines on artificial languages."""

from functools import partial

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.errors import DataError, InputError
from mini_bert.evaluation.formats.conllu import Sentence
from mini_bert.evaluation.probes.classifier import Recipe
from mini_bert.evaluation.probes.probing import (
    MIX,
    ProbeData,
    ProbeOptions,
    ProbeReport,
    ProbeRow,
    analyze_linguistic_probes,
    control_labels,
    probe,
    probe_labels,
    probe_syntactic_knowledge,
    word_memory,
)
from mini_bert.evaluation.probes.sets import probe_sets
from mini_bert.evaluation.statistics import over_seeds
from mini_bert.evaluation.tasks.bio import entity_f1
from mini_bert.text.vocabulary import SPECIAL_TOKENS

WORDS = [f"w{i}" for i in range(12)]
TOKENIZER = WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])
QUICK = ProbeOptions(seeds=2, threads=1, recipe=Recipe(learning_rate=0.03, batch_size=64, max_epochs=3), rank=4,
                     rank_curve=(1, 4, 99))


@pytest.fixture(scope="module")
def model():
    made = MiniBERT(ModelConfig(num_layers=1, num_heads=2, hidden_size=16, intermediate_size=16, vocab_size=17,
                                max_seq_length=16))
    made.params.flat += 0.1 * np.random.default_rng(0).standard_normal(made.params.flat.size).astype(np.float32)
    return made


def sentences(count, seed, label=lambda i: "AB"[i % 2], n=6):
    """The label of a word is a function of the word, so memory is always right."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        ids = rng.integers(0, len(WORDS), n).tolist()
        heads = (0, *(int(rng.integers(1, i + 1)) for i in range(1, n)))
        made.append(Sentence(tuple(WORDS[i] for i in ids), tuple(label(i) for i in ids), heads,
                             ("root", *(("nsubj:pass", "obj")[i % 2] for i in ids[1:])),
                             tuple("B-X" if i == 0 else "O" for i in ids)))
    return made


def test_word_memory_is_the_most_frequent_label_of_a_word():
    words, labels = ["a", "a", "a", "b", "c", "c"], np.array([0, 1, 1, 0, 0, 0])
    assert word_memory(words, labels, ["a", "b", "new"]).tolist() == [1, 0, 0]


def test_control_labels_belong_to_word_types_and_follow_the_label_distribution():
    words = {"train": [f"t{i % 3000}" for i in range(6000)], "test": ["t5", "unseen", "t5"]}
    labels = np.array([0, 0, 0, 1] * 1500)
    found = control_labels(words, labels, 2, seed=1)
    assert (found["train"][:3000] == found["train"][3000:]).all()
    assert found["test"][0] == found["test"][2] == found["train"][5]
    assert found["train"].mean() == pytest.approx(0.25, abs=0.03)
    assert (control_labels(words, labels, 2, seed=2)["train"] != found["train"]).any()


def test_entity_f1_counts_exact_spans():
    gold = [["B-A", "I-A", "O", "B-B"], ["O"]]
    assert entity_f1(gold, gold) == 1
    assert entity_f1(gold, [["B-A", "O", "O", "B-B"], ["O"]]) == 0.5          # one of two is right
    assert entity_f1(gold, [["O"] * 4, ["B-A"]]) == 0
    assert entity_f1([["O"]], [["O"]]) == 0


def test_a_report_has_every_layer_and_every_baseline(model):
    report = probe_labels(model, TOKENIZER, "pos", sentences(80, 0), sentences(20, 1), options=QUICK)
    assert [row.layer for row in report.rows] == ["embeddings", "hidden_0", "final_hidden", MIX]
    assert set(report.baselines) == {"majority", "word-type memory", "word-type memory, lowercase"}
    assert report.baselines["word-type memory"]["accuracy"] == 1
    data = report.to_dict()
    assert data["verdict"]["above_memory"] <= 0           # memory is optimal if labels depend only on the word
    assert data["verdict"]["layer"] != MIX
    assert len(report.rows[-1].mix) == 3
    for row in report.rows:
        assert row.accuracy.mean > 0.9                    # a linear probe can learn it
        assert row.accuracy.values == row.control.values == row.random.values == 2
        assert row.selectivity.mean == pytest.approx(row.accuracy.mean - row.control.mean)
    again = probe_labels(model, TOKENIZER, "pos", sentences(80, 0), sentences(20, 1), options=QUICK)
    assert again.to_dict() == data


def test_the_layer_is_chosen_by_the_development_set():
    def row(layer, dev, test, random_dev, random):
        of = [over_seeds([value] * 2) for value in (dev, test, 0.1, test - 0.1, random_dev, random)]
        return ProbeRow(layer, "linear", *of)

    rows = [row("hidden_0", 0.9, 0.8, 0.3, 0.6), row("hidden_1", 0.8, 0.95, 0.4, 0.5), row(MIX, 0.99, 0.99, 0.9, 0.9)]
    baselines = {"majority": {"accuracy": 0.2}, "word-type memory": {"accuracy": 0.7}}
    verdict = ProbeReport("pos", "accuracy", 2, {}, baselines, rows, [], 2).verdict()
    assert (verdict["layer"], verdict["random_layer"], verdict["mix"]) == ("hidden_0", "hidden_1", 0.99)
    assert (verdict["score"], verdict["random"]) == (0.8, 0.5)
    assert (verdict["above_memory"], verdict["above_random"]) == pytest.approx((0.1, 0.3))


def test_layers_that_exceed_the_memory_limit_are_probed_in_groups_on_the_same_sentences(model, monkeypatch):
    import mini_bert.evaluation.probes.probing as module

    train, test, dev = sentences(80, 0), sentences(20, 1), sentences(20, 2)
    whole = {task: probe(model, TOKENIZER, task, ProbeData(train, test, dev), QUICK) for task in ("pos", "dep")}
    few = partial(probe_sets, max_bytes=2 * model.params.flat.nbytes + 2 * 120 * 6 * 2 * 16)
    monkeypatch.setattr(module, "probe_sets", few)
    monkeypatch.setattr("mini_bert.evaluation.probes.structural.probe_sets", few)
    found = {task: probe(model, TOKENIZER, task, ProbeData(train, test, dev), QUICK) for task in ("pos", "dep")}
    for task in whole:
        assert found[task]["sets"] == whole[task]["sets"]
        assert found[task]["rows"] == [row for row in whole[task]["rows"] if row["layer"] != MIX]
    assert any(note.startswith("the mix of layers was left out") for note in found["pos"]["notes"])
    assert not any("mix" in note for note in whole["pos"]["notes"])


def test_the_hidden_layer_is_optional(model):
    options = ProbeOptions(seeds=1, threads=1, mlp=True, hidden=4, layers=("hidden_0",), recipe=Recipe(max_epochs=1))
    report = probe_labels(model, TOKENIZER, "pos", sentences(20, 0), sentences(10, 1), sentences(5, 2), options)
    assert [(row.layer, row.probe) for row in report.rows] == [("hidden_0", "linear"), ("hidden_0", "mlp")]


def test_labels_unseen_in_training_count_as_wrong_and_are_noted(model):
    strange = [Sentence(("w0", "w1"), ("A", "Z"))]
    report = probe_labels(model, TOKENIZER, "pos", sentences(40, 0), strange, options=QUICK)
    assert any("test: 1 words have labels that are not in training" in note and note.endswith(": Z")
               for note in report.notes)
    assert max(row.accuracy.mean for row in report.rows) <= 0.5
    assert report.baselines["word-type memory"]["accuracy"] == 0.5


def test_named_entities_have_f1_and_relations_no_subtypes(model):
    data = ProbeData(sentences(60, 0), sentences(20, 1))
    found = analyze_linguistic_probes(model, {"ner": data, "deplabel": data}, TOKENIZER, QUICK)
    assert found["ner"]["figure"] == "f1"
    assert found["ner"]["baselines"]["majority"]["f1"] == 0
    assert found["ner"]["baselines"]["word-type memory"] == {"accuracy": 1.0, "f1": 1.0}
    assert {"f1", "random_f1"} <= set(found["ner"]["rows"][0])
    assert found["deplabel"]["labels"] == 3               # root, nsubj, obj


def test_syntactic_knowledge_consists_of_three_tasks(model):
    found = probe_syntactic_knowledge(model, TOKENIZER, sentences(40, 0), sentences(20, 1), sentences(20, 2), QUICK)
    assert set(found) == {"pos", "deplabel", "dep"}
    trees = found["dep"]
    assert [row["layer"] for row in trees["rows"]] == ["embeddings", "hidden_0", "final_hidden"]
    assert [point["rank"] for point in trees["rank_curve"]] == [1, 4, 16]     # 99 exceeds the hidden size
    assert set(trees["baselines"]["linear chain"]) == {"uuas", "distance_spearman", "depth_spearman", "root_accuracy"}
    verdict = trees["verdict"]
    layers = trees["rows"][1:]                            # embeddings are a baseline, not a candidate
    assert verdict["layer"] == max(layers, key=lambda row: row["dev"])["layer"]
    assert all(row["dev"] != row["model"]["uuas"]["mean"] for row in layers)          # different sentences
    assert verdict["above_embeddings"] == pytest.approx(verdict["score"] - verdict["embeddings"])
    assert verdict["above_chain"] == pytest.approx(verdict["score"] - trees["baselines"]["linear chain"]["uuas"])


def test_missing_annotation_is_reported(model):
    bare = [Sentence(("w0", "w1"))] * 4
    with pytest.raises(DataError, match="4 of 4 sentences of the test set have no UPOS tags"):
        probe_labels(model, TOKENIZER, "pos", sentences(9, 0), bare, options=QUICK)
    with pytest.raises(DataError, match="4 of 4 sentences of the test set have no heads"):
        analyze_linguistic_probes(model, {"dep": ProbeData(sentences(9, 0), bare)}, TOKENIZER, QUICK)
    with pytest.raises(DataError, match="nothing to learn"):
        probe_labels(model, TOKENIZER, "pos", sentences(9, 0, lambda i: "A"), sentences(3, 1), options=QUICK)
    with pytest.raises(InputError, match="no task 'tense'"):
        analyze_linguistic_probes(model, {"tense": ProbeData([], [])}, TOKENIZER)
    with pytest.raises(InputError, match="no layer 'top'"):
        probe_labels(model, TOKENIZER, "pos", sentences(9, 0), sentences(3, 1), options=ProbeOptions(layers=("top",)))
    with pytest.raises(InputError, match="seeds must be at least 1"):
        probe_labels(model, TOKENIZER, "pos", sentences(9, 0), sentences(3, 1), options=ProbeOptions(seeds=0))

"""Several labels and numbers from tables to predictions; sets that are set aside; metrics that are chosen."""

import csv
import json

import numpy as np
import pytest
from task_files import CONFIG, run
from test_finetune_command import refused

from mini_bert.errors import DataError, InputError
from mini_bert.evaluation.formats.conllu import Sentence
from mini_bert.evaluation.formats.squad import Question
from mini_bert.evaluation.formats.tables import Labelled
from mini_bert.evaluation.samples import set_aside
from mini_bert.evaluation.tasks.storage import load_task
from mini_bert.evaluation.tasks.task_names import Classification, Entities, Numbers, Questions, SeveralLabels

QUICK = ("--epochs", 12, "--learning-rate", 1e-2, "--no-random-init", "--set", "dropout=0", "--set", "patience=0",
         "--threads", 1)
FILL = ["film", "plot", "a", "the", "was"]


def texts(count, words, seed=0):
    """Texts of four words, with which of the `words` each has."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        there = [word for word in words if rng.random() < 0.5]
        yield " ".join(rng.permutation([*there, *rng.choice(FILL, 4 - len(there))])), there


def test_several_labels_from_a_csv_with_a_column_for_each(data, tmp_path):
    with (tmp_path / "some.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["Comment", "praise", "blame"])
        writer.writerows([text, int("good" in there), int("bad" in there)]
                         for text, there in texts(150, ["good", "bad"]))
    found = run("finetune", "--model", data / "model", "--train", tmp_path / "some.csv", "--label-column", "praise",
                "--label-column", "blame", "--out", tmp_path / "made", *QUICK)
    assert (found["task"], next(iter(found["figures"]))) == ("multilabel", "micro_f1")
    assert found["figures"]["micro_f1"][0] >= 0.95
    assert set(found["baselines"]) == {"the frequent labels", "bag of words"}
    assert load_task(tmp_path / "made").labels == ["blame", "praise"]
    answers = run("predict", "--model", tmp_path / "made", "good film", "a plot", "bad good the film")["answers"]
    assert [answer["answer"] for answer in answers] == ["praise", "none", "blame, praise"]


def test_numbers_from_json_lines(data, tmp_path):
    rows = [{"text": text, "score": 2000 + 0.5 * len(there)} for text, there in texts(200, ["good", "bad", "paris"])]
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = run("finetune", "--model", data / "model", "--train", tmp_path / "some.jsonl", "--out", tmp_path / "made",
                *QUICK)
    assert (found["task"], list(found["figures"])) == ("regression", ["pearson", "spearman", "r2"])
    assert found["figures"]["pearson"][0] >= 0.9
    assert found["baselines"]["the mean of all"] == 0
    low, high = run("predict", "--model", tmp_path / "made", "a film the plot", "good bad paris film")["answers"]
    assert 1999.5 < low["values"]["score"] < high["values"]["score"] < 2002
    saved = load_task(tmp_path / "made")
    assert saved.model.loss_name.startswith("squared_error(mean=2000.")
    assert saved.columns == ("text",)


def test_predictions_of_a_table_are_written_beside_its_own_columns(data, tmp_path):
    (tmp_path / "train.csv").write_text("nr,Comment,Verdict\n" + "".join(
        f"{i},{'good' if i % 2 else 'bad'} film was the plot,{'pos' if i % 2 else 'neg'}\n" for i in range(40)))
    run("finetune", "--model", data / "model", "--train", tmp_path / "train.csv", "--out", tmp_path / "made", *QUICK)
    (tmp_path / "new.csv").write_text('Comment,nr\n"good, the film",7\nbad plot,8\n')
    found = run("predict", "--model", tmp_path / "made", "--data", tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert [answer["answer"] for answer in found["answers"]] == ["pos", "neg"]
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["Comment"], row["nr"], row["answer"]) for row in rows] == [("good, the film", "7", "pos"),
                                                                            ("bad plot", "8", "neg")]
    assert float(rows[0]["p(pos)"]) + float(rows[0]["p(neg)"]) == pytest.approx(1, abs=1e-5)
    run("predict", "--model", tmp_path / "made", "good film", "--out", tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text())["answer"] == "pos"
    assert "must end in .csv" in refused("predict", "--model", tmp_path / "made", "x", "--out", tmp_path / "out.txt")
    assert "Give texts or --data" in refused("predict", "--model", tmp_path / "made", "x", "--data",
                                             tmp_path / "new.csv")


def test_a_long_text_is_learned_and_answered_by_all_of_its_windows(data, tmp_path):
    """What decides is behind the model's 16 tokens."""
    filler = "the film was a plot " * 5
    rows = [f"{filler}{word},{label}\n" for word, label in [("good", "pos"), ("bad", "neg")] * 30]
    (tmp_path / "some.csv").write_text("text,label\n" + "".join(rows))
    found = run("finetune", "--model", data / "model", "--train", tmp_path / "some.csv", "--dev", tmp_path / "some.csv",
                "--out", tmp_path / "made", *QUICK)
    assert found["notes"]["longer than the model reads at once"] == 120
    assert found["figures"]["accuracy"] == [1.0]
    answers = run("predict", "--model", tmp_path / "made", f"{filler}good", f"{filler}bad")["answers"]
    assert [(answer["answer"], answer["in_windows"]) for answer in answers] == [("pos", True), ("neg", True)]


def test_another_metric_is_the_main_one_if_it_fits(data, tmp_path):
    common = ("finetune", "--model", data / "model", "--train", data / "train.tsv", "--dev", data / "dev.tsv",
              "--max-samples", 20, "--epochs", 1, "--no-random-init")
    assert list(run(*common, "--metric", "mcc")["figures"]) == ["mcc", "accuracy", "macro_f1"]
    assert list(run(*common, "--task", "cola")["figures"]) == ["mcc", "accuracy"]
    assert "The metric pearson is of numbers, and the task has classes" in refused(*common, "--metric", "pearson")
    assert "'accuraccy' is not a choice; the nearest is 'accuracy'" in refused(*common, "--metric", "accuraccy")
    assert "The task ner takes no metric" in refused(*common, "--task", "ner", "--metric", "mcc")


# -------------------------------------------------------------------- a development set that is set aside


def test_a_tenth_is_set_aside_by_the_seed_with_the_shares_of_all_labels():
    labels = ["a"] * 200 + ["b"] * 80 + ["c"] * 20
    chosen = set_aside(range(300), labels, 0.1, 5, "dev")
    assert chosen == set_aside(range(300), labels, 0.1, 5, "dev")
    assert chosen != set_aside(range(300), labels, 0.1, 6, "dev")
    assert [sum(labels[i] == label for i in chosen) for label in "abc"] == [20, 8, 2]
    numbers = np.arange(100.0)
    there = set_aside(range(100), numbers.tolist(), 0.1, 0, "dev")
    assert np.abs(np.sort(numbers[there]) - np.arange(5, 100, 10)).max() < 11          # spread over the whole scale


def test_equal_texts_are_on_one_side():
    records = [Labelled(f"text {i % 10}", None, "ab"[i % 2]) for i in range(60)]
    chosen = set_aside([record.text for record in records], [record.label for record in records], 0.1, 0, "dev")
    assert len(chosen) == 6
    assert len({records[i].text for i in chosen}) == 1


@pytest.mark.parametrize("kind", [Classification, SeveralLabels, Numbers])
def test_without_a_development_set_one_is_set_aside(kind, tokenizer):
    records = [Labelled(f"good {'film ' * (i % 7)}{i}", None, str(i % 4)) for i in range(100)]
    task = kind(records, None, tokenizer, CONFIG)
    assert (task.notes["train"], task.notes["dev"], task.notes["of dev, also in train"]) == (90, 10, 0)
    assert task.said[-1] == "10 of 100 examples are set aside as the development set."
    assert [record.text for record in task.dev.records] == [
        record.text for record in kind(records, None, tokenizer, CONFIG).dev.records]


def test_words_and_questions_have_a_development_set_too(tokenizer):
    sentences = [Sentence(("anna", str(i)), entities=("B-PER", "O")) for i in range(40)]
    assert Entities(sentences, None, tokenizer, CONFIG).notes["dev"] == 4
    asked = [Question(str(i), "who", f"anna was {i // 2}", ("anna",), 0) for i in range(40)]
    task = Questions(asked, None, tokenizer, CONFIG)
    assert task.notes["dev"] == 4                             # both questions of two texts
    assert len({item.context for item in task.dev.questions}) == 2


def test_labels_that_cannot_be_learned_are_refused(tokenizer):
    with pytest.raises(DataError, match="has only the number 3, so there is nothing to learn"):
        Numbers([Labelled(f"a {i}", None, "3") for i in range(4)], None, tokenizer, CONFIG)
    with pytest.raises(DataError, match="'many', which is not a number"):
        Numbers([Labelled("a", None, "many")], None, tokenizer, CONFIG)
    with pytest.raises(DataError, match="has no labels"):
        SeveralLabels([Labelled("a", None, "")], None, tokenizer, CONFIG)
    with pytest.raises(InputError, match="fewer than two examples"):
        set_aside(["a"], ["x"], 0.1, 0)

"""Development and test sets of tasks, their overlap, baselines, and shares of the data."""

import pytest
from task_files import CONFIG

from mini_bert import MiniBERT
from mini_bert.evaluation.formats.conllu import Sentence
from mini_bert.evaluation.formats.squad import Question
from mini_bert.evaluation.formats.tables import Labelled
from mini_bert.evaluation.suite.parts import tuning
from mini_bert.evaluation.tasks.run import run_task
from mini_bert.evaluation.tasks.scores import answer_f1
from mini_bert.evaluation.tasks.task_names import Classification, Entities, Questions
from mini_bert.evaluation.tasks.texts import bag_of_words
from mini_bert.evaluation.tasks.texts.bag_of_words import bag_of_words_accuracy
from mini_bert.training.finetune import FinetuneConfig

GOOD, BAD = Labelled("good film", None, "pos"), Labelled("bad film", None, "neg")
TURNED = [Labelled("good plot", None, "neg"), Labelled("bad plot", None, "pos"), Labelled("good plot", None, "neg")]
QUICK = FinetuneConfig(epochs=20, learning_rate=1e-2, dropout=0.0, patience=0, threads=1, batch_size=4)


def test_training_stops_by_dev_and_is_measured_on_test(tokenizer):
    task = Classification([GOOD, BAD] * 10, [GOOD, BAD], tokenizer, CONFIG, test=TURNED)
    result, _ = run_task(task, MiniBERT(CONFIG), QUICK, random_init=False)
    assert (result.dev_figures["accuracy"], result.figures["accuracy"]) == ([1.0], [0.0])
    assert (result.measured_on, result.measured, result.notes["dev"], result.notes["test"]) == ("test", 3, 2, 3)
    assert result.to_dict()["measured_on"] == "test"
    assert result.baselines == {"majority": pytest.approx(1 / 3), "bag of words": 0.0}
    alone, _ = run_task(Classification([GOOD, BAD] * 10, [GOOD, BAD], tokenizer, CONFIG), MiniBERT(CONFIG), QUICK,
                        random_init=False)
    assert (alone.measured_on, alone.dev_figures, alone.measured) == ("dev", {}, 2)
    assert alone.figures["accuracy"] == [1.0]
    assert "which also stops training" in tuning._notes(alone)[-1]
    assert not any("which also stops training" in note for note in tuning._notes(result))


def test_the_saved_seed_is_the_best_on_the_development_set(tokenizer, monkeypatch):
    task = Classification([GOOD, BAD], [GOOD, BAD], tokenizer, CONFIG, test=TURNED)
    dev, test, models = {1: 0.5, 2: 0.4}, {1: 0.1, 2: 0.8}, []

    def figures(held, model, team):
        if model not in models:
            models.append(model)
        return {"accuracy": (dev if held is task.dev else test)[len(models)]}

    monkeypatch.setattr(task, "_figures", figures)
    result, best = run_task(task, MiniBERT(CONFIG), FinetuneConfig(epochs=1, threads=1), seeds=(0, 1),
                            random_init=False)
    assert best is models[0]
    assert (result.figures["accuracy"], result.dev_figures["accuracy"]) == ([0.1, 0.8], [0.5, 0.4])


def test_examples_in_two_sets_are_counted(tokenizer):
    train, other = [GOOD, BAD], Labelled("the plot was good", None, "pos")
    notes = Classification(train, [GOOD._replace(label="neg"), GOOD, other], tokenizer, CONFIG,
                           test=[BAD, other]).notes
    assert notes["of dev, also in train"] == 2
    assert (notes["of test, also in train"], notes["of test, also in dev"]) == (1, 1)
    assert Classification(train, [other], tokenizer, CONFIG).notes["of dev, also in train"] == 0
    words = [Sentence(("anna", "lives"), entities=("B-PER", "O")), Sentence(("a", "film"), entities=("O", "O"))]
    assert Entities(words, words[1:], tokenizer, CONFIG).notes["of dev, also in train"] == 1
    asked = [Question("0", "who", "anna was", ("anna",), 0), Question("1", "where", "anna was", ("anna",), 0)]
    assert Questions(asked[:1], asked, tokenizer, CONFIG).notes["of dev, also in train"] == 1


# -------------------------------------------------------------------- baselines


def test_the_bag_of_words_learns_words_but_not_their_order():
    assert bag_of_words_accuracy([GOOD, BAD] * 5, [GOOD, BAD, TURNED[0]], ["neg", "pos"]) == pytest.approx(2 / 3)
    far = [Labelled("good the bad", None, "a"), Labelled("bad the good", None, "b")]
    near = [Labelled("good a bad", None, "a"), Labelled("bad a good", None, "b")]      # unseen word pairs
    assert bag_of_words_accuracy(far * 5, far, ["a", "b"]) == 1
    assert bag_of_words_accuracy(far * 5, near, ["a", "b"]) == 0.5
    pairs = [Labelled("good", "paris", "x"), Labelled("good", "london", "y")]
    assert bag_of_words_accuracy(pairs * 5, pairs, ["x", "y"]) == 1


def test_the_bag_of_words_is_tuned_on_dev_and_measured_on_test(monkeypatch):
    assert bag_of_words_accuracy([GOOD, BAD] * 5, [GOOD, BAD], ["neg", "pos"], [*TURNED, GOOD]) == 0.25
    monkeypatch.setattr(bag_of_words, "_fit", lambda *given: [[0.5, 0.9], [0.8, 0.3]])
    assert bag_of_words_accuracy([GOOD, BAD], [GOOD, BAD], ["neg", "pos"], TURNED) == 0.3


def test_the_memory_of_word_types(tokenizer):
    train = [Sentence(("Anna", "lives", "in", "Paris"), entities=("B-PER", "O", "O", "B-LOC")),
             Sentence(("paris", "film"), entities=("B-LOC", "O")), Sentence(("Paris",), entities=("B-PER",))]
    dev = [Sentence(("anna", "in", "PARIS"), entities=("B-PER", "O", "B-LOC")),
           Sentence(("London", "film"), entities=("B-LOC", "O"))]                # London is unknown, so O
    assert Entities(train, dev, tokenizer, CONFIG).baselines() == {"word-type memory": pytest.approx(2 * 2 / (2 + 3))}


def test_the_baseline_of_questions_is_the_sentence_with_most_common_words(tokenizer):
    context = "the film was good. anna lives in paris. the plot was bad"
    item = Question("0", "where lives anna", context, ("paris",), context.index("paris"))
    found = Questions([item], [item], tokenizer, CONFIG).baselines()
    assert found["sentence with most words of the question"] == pytest.approx(2 * 1 / (4 + 1))
    three = context.split()
    assert found["three words at random"] in {answer_f1(" ".join(three[i : i + 3]), ("paris",)) for i in range(9)}
    short = Question("0", "who", "anna", ("anna",), 0)
    assert Questions([short], [short], tokenizer, CONFIG).baselines() == {
        "sentence with most words of the question": 1.0, "three words at random": 1.0}


# -------------------------------------------------------------------- a part of the data


def test_a_share_of_the_data_consists_of_whole_examples(tokenizer):
    long = Sentence(tuple(["films", "good"] * 10), entities=tuple(["B-X", "O"] * 10))
    task = Entities([long] * 10, [long], tokenizer, CONFIG)
    parts = len(task.train.rows) // 10
    some = task.reduced(0.3, seed=0)
    assert parts > 1
    assert (len(set(some.owners)), len(some.rows), some.split) == (3, 3 * parts, 3)
    assert all(row == task.train.rows[parts * owner + i % parts]
               for i, (owner, row) in enumerate(zip(some.owners, some.rows, strict=True)))
    assert (len(some.places), len(some.answers), some.types) == (len(some.rows), len(some.rows), None)
    assert some.owners == task.reduced(0.3, seed=0).owners
    assert {tuple(task.reduced(0.3, seed).owners) for seed in range(10)} != {tuple(some.owners)}
    assert len(set(task.reduced(0.001, seed=0).owners)) == 1
    assert task.reduced(1.0, seed=0).rows == task.train.rows

"""Tasks from files to results, saved and loaded again."""

import json
import os

import numpy as np
import pytest
from task_files import CONFIG, run

import mini_bert
from mini_bert import MiniBERT, WordPieceTokenizer
from mini_bert.core.task_model import TaskModel
from mini_bert.errors import CheckpointError, DataError, InputError, MiniBertError
from mini_bert.evaluation.formats.conllu import Sentence
from mini_bert.evaluation.formats.squad import Question, read_questions
from mini_bert.evaluation.formats.tables import Labelled
from mini_bert.evaluation.tasks.encode import encode_questions, encode_words
from mini_bert.evaluation.tasks.predict import answers
from mini_bert.evaluation.tasks.storage import load_task, save_task
from mini_bert.evaluation.tasks.task_names import Classification, Entities, Questions
from mini_bert.workers import Workers


@pytest.mark.parametrize(("task", "ending", "figure", "least"), [
    ("classification", ".tsv", "accuracy", 0.95), ("pair", ".pairs.tsv", "accuracy", 0.95),
    ("ner", ".conll", "entity_f1", 0.95), ("qa", ".json", "f1", 0.8)])
def test_a_task_from_files_to_answers(data, tmp_path, task, ending, figure, least):
    out = tmp_path / "made"
    command = ["finetune", "--task", task, "--model", data / "model", "--train", data / f"train{ending}", "--dev",
               data / f"dev{ending}", "--out", out, "--epochs", 15, "--learning-rate", 1e-2, "--seeds", 2,
               "--set", "dropout=0", "--set", "patience=0"]
    found = run(*command)
    assert next(iter(found["figures"])) == figure
    assert len(found["figures"][figure]) == len(found["from_random"][figure]) == 2
    assert found["mean"][figure]["mean"] >= least
    assert found["baselines"]
    asked = {"pair": "good film\tthe paris plot",
             "qa": "where lives anna\tthe film was a plot. Anna lives in London. the film was the plot."}
    answer = run("predict", "--model", out, asked.get(task, "anna lives in paris . good"))["answers"][0]
    expected = {"classification": "pos", "pair": "both", "ner": "anna (PER), paris (LOC)", "qa": "London"}
    assert answer["answer"] == expected[task]
    if task == "pair":                                                # both texts are read
        others = run("predict", "--model", out, "bad film\tthe paris plot", "good film\tthe london plot")["answers"]
        assert [other["answer"] for other in others] == ["other", "other"]
    assert load_task(out).labels == sorted(load_task(out).labels, key=lambda label: (label != "O", label))
    assert mini_bert.load(out).config.hidden_size == 16               # the encoder can be loaded like any model


def test_a_second_run_uses_the_cache(data, monkeypatch):
    command = ["finetune", "--model", data / "model", "--train", data / "train.tsv", "--dev", data / "dev.tsv",
               "--epochs", 1, "--no-random-init", "--max-samples", 30]
    first = run(*command)
    monkeypatch.setattr("mini_bert.api.finetune.run_task", None)
    assert run(*command) == first


def test_long_sentences_are_read_in_parts_and_nothing_is_lost(tokenizer):
    words = ["films", "good"] * 20
    encoded = encode_words([words, ["bad"]], None, tokenizer, 16)
    assert max(map(len, encoded.rows)) <= 16
    assert sum(map(len, encoded.answers)) == 41
    assert encoded.split == 1
    for row, places in zip(encoded.rows, encoded.places, strict=True):
        assert all(tokenizer.vocabulary[row[i]] in ("film", "good", "bad") for i in places)


def test_windows_cover_the_context_and_point_at_the_answer(tokenizer):
    context = "the plot was bad. " * 6 + "Anna lives in Paris. " + "a film was good. " * 6
    item = Question("0", "where lives anna", context, ("Paris",), context.index("Paris"))
    windows = encode_questions([item], tokenizer, 16, stride=4, with_types=False)
    assert windows.answerable == 1
    found = {context[offsets[a][0] : offsets[b][1]] for offsets, (a, b)
             in zip(windows.offsets, windows.encoded.answers, strict=True) if a}
    assert found == {"Paris"}
    seen = {place for offsets in windows.offsets for place in offsets if place != (0, 0)}
    assert seen == set(tokenizer.align(context, add_special_tokens=False).offsets)


def test_an_answer_is_a_span_of_the_context(data, tokenizer):
    task = Questions(data / "train.json", data / "dev.json", tokenizer, CONFIG)
    questions, _ = read_questions(data / "dev.json")
    windows = encode_questions(questions, tokenizer, 16, stride=4, with_types=False)
    found = answers(TaskModel(MiniBERT(CONFIG), "span", 2), windows, questions, Workers(1))
    assert all(answer.text and answer.text in question.context
               for answer, question in zip(found, questions, strict=True))
    assert 0 < task.notes["answerable in some window"] <= 1


def test_labels_unseen_in_training_are_refused(data, tokenizer, tmp_path):
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\na film\tneutral\n")
    with pytest.raises(DataError, match="'neutral', which does not occur in training; that has neg, pos"):
        Classification(data / "train.tsv", tmp_path / "dev.tsv", tokenizer, CONFIG)
    (tmp_path / "one.tsv").write_text("sentence\tlabel\na film\tx\n")
    with pytest.raises(DataError, match="has only the label"):
        Classification(tmp_path / "one.tsv", tmp_path / "one.tsv", tokenizer, CONFIG)
    (tmp_path / "dev.conll").write_text("anna B-DOG\n")
    task = Entities(data / "train.conll", tmp_path / "dev.conll", tokenizer, CONFIG)
    assert task.notes["words with labels unseen in training, which count as wrong"] == 1


def test_entities_need_two_labels_and_every_sentence_to_have_them(tokenizer):
    some = [Sentence(("anna", "."), entities=("B-PER", "O"))]
    with pytest.raises(DataError, match="The data has only the label 'O'"):
        Entities([Sentence(("a", "film"), entities=("O", "O"))], some, tokenizer, CONFIG)
    with pytest.raises(DataError, match="The data, sentence 2: it has no entity annotation, unlike others; 1 of 2"):
        Entities(some, [*some, Sentence(("a",))], tokenizer, CONFIG)
    with pytest.raises(DataError, match="has no named entities"):
        Entities(some, [Sentence(("a",))], tokenizer, CONFIG)


def test_examples_that_are_too_long_are_counted(tokenizer):
    long = Sentence(("film" + "s" * 20, "good"), entities=("B-X", "O"))         # a word of 21 pieces, where 14 fit
    task = Entities([long, Sentence(("a",), entities=("O",))], [long], tokenizer, CONFIG)
    assert (task.notes["words too long, cut"], task.notes["longer than the model reads at once, in windows"]) == (2, 2)
    context = "the plot was bad . " * 4 + "anna"
    asked = [Question("0", "who was " * 6, context, ("anna",), context.index("anna")),
             Question("1", "who", "anna was", ("anna",), 0)]
    notes = Questions(asked, asked[1:], tokenizer, CONFIG).notes
    assert (notes["texts too long, in several windows"], notes["questions too long, cut"]) == (1, 1)


@pytest.fixture
def saved(tmp_path, tokenizer):
    """The directory of a task model with two labels."""
    save_task(tmp_path / "task", TaskModel(MiniBERT(CONFIG), "sequence", 2), tokenizer, "any", ["bad", "good"], {})
    return tmp_path / "task"


@pytest.mark.parametrize(("change", "words"), [
    ({"labels": ["bad"]}, "there are 1 labels for 2 outputs"), ({"labels": 5}, "labels must be a list"),
    ({"labels": []}, "there are 0 labels for 2 outputs"), ({"labels": [1, 2]}, "labels must be a list of text"),
    ({"outputs": "x"}, "outputs must be a positive integer"), ({"outputs": None}, "outputs must be a positive integer"),
    ({"head": "tail"}, "task_head: 'tail' is not a choice"), ({"head": 3}, "must be text"),
    ({"task": None}, "must be text"), ({"outputs": 3, "labels": ["a", "b", "c"]}, "is not the one that")])
def test_an_invalid_task_json_is_refused(saved, change, words):
    file = saved / "task.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(CheckpointError, match=words):
        load_task(saved)


def test_a_tokenizer_of_another_model_is_refused(saved, tokenizer):
    WordPieceTokenizer([*tokenizer.vocabulary][:5] + [*tokenizer.vocabulary][:4:-1]).save(saved)
    with pytest.raises(InputError, match="does not belong to the model"):
        load_task(saved)


@pytest.mark.parametrize("reason", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_save_that_fails_leaves_the_old_model(saved, tokenizer, monkeypatch, reason):
    before = {file.name: file.read_bytes() for file in saved.iterdir()}

    def fail(*arguments):
        raise reason

    monkeypatch.setattr("mini_bert.evaluation.tasks.storage.write_files", fail)
    with pytest.raises((KeyboardInterrupt, CheckpointError)):
        save_task(saved, TaskModel(MiniBERT(CONFIG, seed=1), "sequence", 2), tokenizer, "any", ["no", "yes"], {})
    assert {file.name: file.read_bytes() for file in saved.iterdir()} == before
    assert [path.name for path in saved.parent.iterdir()] == ["task"]
    assert load_task(saved).labels == ["bad", "good"]


def test_a_name_that_is_not_utf_8_is_saved(tmp_path, tokenizer):
    model = TaskModel(MiniBERT(CONFIG), "sequence", 2)
    save_task(tmp_path / "task", model, tokenizer, "any", ["bad", "good"], {"from": os.fsdecode(b"caf\xe9")})
    assert load_task(tmp_path / "task").labels == ["bad", "good"]


def test_a_folder_with_anything_else_is_not_replaced(saved, tokenizer):
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match=r"such as notes\.txt"):
        save_task(saved, TaskModel(MiniBERT(CONFIG), "sequence", 2), tokenizer, "any", ["bad", "good"], {})
    assert (saved / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["model.safetensors", "task.safetensors", "config.json", "task.json", "vocab.txt"])
def test_a_flipped_bit_of_a_task_model_is_noticed_or_changes_nothing(saved, name, rng):
    """Some bits of JSON change nothing, such as those of white space; all others are noticed."""
    before, content = load_task(saved), (saved / name).read_bytes()
    for place in rng.integers(8 * len(content), size=60):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        (saved / name).write_bytes(flipped)
        try:
            after = load_task(saved)
        except MiniBertError:
            continue
        assert np.array_equal(after.model.params.flat, before.model.params.flat)
        assert (after.labels, after.task, after.model.config) == (before.labels, before.task, before.model.config)
        assert after.tokenizer.vocabulary.pieces == before.tokenizer.vocabulary.pieces


def test_an_encoder_of_another_model_is_noticed(saved):
    MiniBERT(CONFIG, seed=5).save(saved)
    with pytest.raises(CheckpointError, match="not the encoder"):
        load_task(saved)


def test_a_sample_has_the_labels_of_the_whole_data(tokenizer):
    train = [Labelled("anna was", None, "ABCD"[i % 4]) for i in range(40)]
    task = Classification(train, train, tokenizer, CONFIG, max_samples=2)
    assert task.labels == ["A", "B", "C", "D"]
    assert task.baselines()["majority"] <= 1


def test_a_directory_without_a_task_model_is_refused(data):
    with pytest.raises(CheckpointError, match=r"has no task\.json"):
        load_task(data / "model")

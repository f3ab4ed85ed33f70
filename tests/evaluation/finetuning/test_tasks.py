"""Tasks from files to figures, saved and asked again."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import mini_bert
from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.cli.app import app
from mini_bert.errors import CheckpointError, DataError
from mini_bert.evaluation.finetuning.encode import encode_questions, encode_words
from mini_bert.evaluation.finetuning.predict import answers
from mini_bert.evaluation.finetuning.storage import load_task
from mini_bert.evaluation.finetuning.tasks import Classification, Entities, Questions
from mini_bert.evaluation.formats.squad import Question, read_questions
from mini_bert.evaluation.formats.tables import read_table
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.training.workers import Workers

WORDS = ["good", "bad", "film", "plot", "a", "the", "was", "paris", "london", "anna", "who", "where", "lives", "in",
         "##s", "."]
CONFIG = ModelConfig(num_layers=1, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=21, max_seq_length=16)


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture(scope="module")
def data(tmp_path_factory, tokenizer):
    folder, rng = tmp_path_factory.mktemp("tasks"), np.random.default_rng(0)
    fill = ["film", "plot", "a", "the", "was"]

    def text(word: str) -> str:
        return " ".join(rng.permutation([word, *rng.choice(fill, 3)]))

    for name, n in (("train", 120), ("dev", 40)):
        rows = [(text(word), label) for word, label in [("good", "pos"), ("bad", "neg")] * (n // 2)]
        (folder / f"{name}.tsv").write_text("sentence\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in rows))
        pairs = [(text(a), text(b), "same" if a == b else "other")
                 for a, b in zip(rng.choice(["good", "bad"], n), rng.choice(["good", "bad"], n), strict=True)]
        (folder / f"{name}.pairs.tsv").write_text(
            "sentence1\tsentence2\tlabel\n" + "".join("\t".join(row) + "\n" for row in pairs))
        sentences = []
        for _ in range(n):
            person, place = rng.choice(["anna", "film"]), rng.choice(["paris", "london"])
            sentences.append(f"{person} {'B-PER' if person == 'anna' else 'O'}\nlives O\nin O\n{place} B-LOC\n. O\n")
        (folder / f"{name}.conll").write_text("\n".join(sentences))
        questions = [{"id": i, "question": "where lives anna", "answer": place,
                      "context": f"{text('film')}. Anna lives in {place}. {text('plot')}. {text('plot')}."}
                     for i, place in enumerate(rng.choice(["Paris", "London"], n))]
        (folder / f"{name}.json").write_text(json.dumps(questions))
    MiniBERT(CONFIG, seed=0).save(folder / "model")
    tokenizer.save(folder / "model")
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "cache"))


def run(*arguments: object) -> dict:
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize(("task", "ending", "figure", "least"), [
    ("classification", ".tsv", "accuracy", 0.95), ("pair", ".pairs.tsv", "accuracy", 0.5),
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
    asked = {"pair": "good film\tgood plot",
             "qa": "where lives anna\tthe film was a plot. Anna lives in London. the film was the plot."}
    answer = run("predict", "--model", out, asked.get(task, "anna lives in paris . good"))["answers"][0]
    expected = {"classification": "pos", "pair": None, "ner": "anna (PER), paris (LOC)", "qa": "London"}
    assert expected[task] in (None, answer["answer"])
    assert load_task(out).labels == sorted(load_task(out).labels, key=lambda label: (label != "O", label))
    assert mini_bert.load(out).config.hidden_size == 16               # the encoder opens as any model


def test_a_second_run_is_remembered(data, monkeypatch):
    command = ["finetune", "--model", data / "model", "--train", data / "train.tsv", "--dev", data / "dev.tsv",
               "--epochs", 1, "--no-random-init", "--max-samples", 30]
    first = run(*command)
    monkeypatch.setattr("mini_bert.cli.finetune.run_task", None)
    assert run(*command) == first


def test_long_sentences_are_read_in_parts_and_nothing_is_lost(tokenizer):
    words = ["films", "good"] * 20
    encoded = encode_words([words, ["bad"]], None, tokenizer, 16)
    assert max(map(len, encoded.rows)) <= 16
    assert sum(map(len, encoded.answers)) == 41
    assert encoded.cut == 1
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


def test_an_answer_is_a_stretch_of_the_context(data, tokenizer):
    task = Questions(data / "train.json", data / "dev.json", tokenizer, CONFIG)
    from mini_bert.core.task_model import TaskModel

    questions, _ = read_questions(data / "dev.json")
    windows = encode_questions(questions, tokenizer, 16, stride=4, with_types=False)
    found = answers(TaskModel(MiniBERT(CONFIG), "span", 2), windows, questions, Workers(1))
    assert all(answer.text and answer.text in question.context
               for answer, question in zip(found, questions, strict=True))
    assert 0 < task.notes["answerable in some window"] <= 1


@pytest.mark.parametrize(("content", "words"), [
    ("sentence\tlabel\n", "no examples"), ("words\n", "line 1: it must name the columns"),
    ("sentence\nfine\n", "no column of labels"), ("sentence\tlabel\na\tb\tc\n", "line 2: it has 3 columns"),
    ("sentence\tlabel\na\t\n", "line 2: its label is empty"), ("sentence\tlabel\n\tx\n", "line 2: its text is empty"),
    ("sentence\tlabel\ncaf\xe9\tx\n", "line 2: byte")])
def test_a_malformed_table_is_refused_with_its_line(tmp_path, content, words):
    (tmp_path / "data.tsv").write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=words):
        read_table(tmp_path / "data.tsv")


@pytest.mark.parametrize(("content", "words"), [
    ("{", "not JSON"), ("3", "neither SQuAD's JSON"), ('[{"question": "a"}]', "item 0: it needs the fields"),
    ('{"data": [{"paragraphs": [{"qas": []}]}]}', "no question"), ('{"data": [1]}', "not SQuAD's JSON"),
    ('[{"question": "a", "context": "b", "answer": "c"}]', "no question whose answer stands")])
def test_a_malformed_file_of_questions_is_refused(tmp_path, content, words):
    (tmp_path / "data.json").write_text(content)
    with pytest.raises(DataError, match=words):
        read_questions(tmp_path / "data.json")


def test_squads_own_form_is_read(tmp_path):
    content = {"data": [{"paragraphs": [{"context": "Anna lives in Paris.", "qas": [
        {"id": "q", "question": "Where?", "answers": [{"text": "Paris", "answer_start": 14}]},
        {"id": "r", "question": "Why?", "is_impossible": True, "answers": []}]}]}]}
    (tmp_path / "data.json").write_text(json.dumps(content))
    questions, lost = read_questions(tmp_path / "data.json")
    assert questions == [Question("q", "Where?", "Anna lives in Paris.", ("Paris",), 14)]
    assert lost == 0


def test_labels_that_training_has_not_seen(data, tokenizer, tmp_path):
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\na film\tneutral\n")
    with pytest.raises(DataError, match="'neutral', which training has not seen; it knows neg, pos"):
        Classification(data / "train.tsv", tmp_path / "dev.tsv", tokenizer, CONFIG)
    (tmp_path / "one.tsv").write_text("sentence\tlabel\na film\tx\n")
    with pytest.raises(DataError, match="one label alone"):
        Classification(tmp_path / "one.tsv", tmp_path / "one.tsv", tokenizer, CONFIG)
    (tmp_path / "dev.conll").write_text("anna B-DOG\n")
    task = Entities(data / "train.conll", tmp_path / "dev.conll", tokenizer, CONFIG)
    assert task.notes["words with labels unseen in training, which count as wrong"] == 1


def test_a_directory_that_is_no_task_is_refused(data):
    with pytest.raises(CheckpointError, match=r"has no task\.json"):
        load_task(data / "model")

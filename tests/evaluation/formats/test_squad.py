"""The reader of questions, in both formats."""

import json

import pytest

from mini_bert.errors import DataError
from mini_bert.evaluation.formats.squad import Question, make_question, read_questions


@pytest.mark.parametrize(("content", "words"), [
    ("{", "cannot be read as JSON"), ("3", "neither SQuAD's JSON"),
    ('[{"question": "a"}]', "item 0: it needs the fields"),
    ('{"data": [{"paragraphs": [{"context": "", "qas": []}]}]}', "no question"), ('{"data": [1]}', "not SQuAD's JSON"),
    ('[{"question": "a", "context": "b", "answer": "c"}]', "no question whose answer occurs")])
def test_a_malformed_file_of_questions_is_refused(tmp_path, content, words):
    (tmp_path / "data.json").write_text(content)
    with pytest.raises(DataError, match=words):
        read_questions(tmp_path / "data.json")


def test_squad_json_is_read(tmp_path):
    content = {"data": [{"paragraphs": [{"context": "Anna lives in Paris.", "qas": [
        {"id": "q", "question": "Where?", "answers": [{"text": "Paris", "answer_start": 14}]},
        {"id": "r", "question": "Why?", "is_impossible": True, "answers": []}]}]}]}
    (tmp_path / "data.json").write_text(json.dumps(content))
    questions, lost = read_questions(tmp_path / "data.json")
    assert questions == [Question("q", "Where?", "Anna lives in Paris.", ("Paris",), 14)]
    assert lost == 1              # marked as is_impossible


@pytest.mark.parametrize("start", [-1, -5, 0, 3, 99, None])
def test_an_answer_at_the_start_of_its_text_is_found(start):
    found = make_question("q", "Where?", "Paris is big", [("Paris", start)])
    assert found.start == 0
    assert found.moved == (start not in (0, None))            # answer_start was wrong


def test_the_first_answer_that_occurs_in_the_text_is_the_training_target():
    found = make_question("q", "Who?", "the cat sat", [("dog", 0), ("cat", 4)])
    assert (found.answers, found.start, found.moved) == (("cat", "dog"), 4, False)
    assert make_question("q", "Who?", "the cat sat", [("dog", 0), ("cow", None)]).start == -1


def test_a_plain_question_whose_text_starts_with_the_answer_is_kept(tmp_path):
    item = {"id": "q", "question": "What is big?", "context": "Paris is big", "answer": "Paris"}
    (tmp_path / "data.json").write_text(json.dumps([item]))
    assert read_questions(tmp_path / "data.json") == ([Question("q", "What is big?", "Paris is big", ("Paris",), 0)], 0)


@pytest.mark.parametrize(("change", "words"), [
    ({"question": " "}, r"the question of data\[0\]\.paragraphs\[1\]\.qas\[1\] is empty"),
    ({"question": 3}, r"data\[0\]\.paragraphs\[1\]\.qas\[1\] is not an object with the text 'question'"),
    ({"answers": None}, r"paragraphs\[1\]\.qas\[1\] is not an object with the list 'answers'"),
    ({"answers": [{"text": 5, "answer_start": 0}]}, r"qas\[1\]\.answers\[0\] is not an object with the text 'text'"),
    ({"answers": [{"text": "a", "answer_start": "0"}]}, r"qas\[1\]\.answers\[0\] has no integer 'answer_start'")])
def test_malformed_squad_json_is_refused_with_its_path(tmp_path, change, words):
    good = {"id": "q", "question": "Who?", "answers": [{"text": "a", "answer_start": 0}]}
    paragraphs = [{"context": "a", "qas": [good]}, {"context": "a", "qas": [good, good | change]}]
    (tmp_path / "data.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    with pytest.raises(DataError, match=words):
        read_questions(tmp_path / "data.json")

"""Tasks from the library `datasets`: the same records as from files, and what is refused."""

import json
import sys
from types import SimpleNamespace

import pytest
from fake_datasets import Examples
from typer.testing import CliRunner

from mini_bert import CorpusError, MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.cli.app import app
from mini_bert.errors import DataError
from mini_bert.evaluation.formats.reading import load_questions, load_sentences, load_texts
from mini_bert.evaluation.formats.tables import Labelled
from mini_bert.text.vocabulary import SPECIAL_TOKENS


@pytest.fixture
def hub(monkeypatch):
    """The datasets of a fake library: (name, split) -> examples."""
    held = {}
    library = SimpleNamespace(
        get_dataset_config_names=lambda name: ["default"],
        load_dataset=lambda name, config, split, streaming: held[name, split])
    monkeypatch.setitem(sys.modules, "datasets", library)
    return held


def test_texts_and_pairs_get_the_names_of_their_labels(hub):
    hub["a", "train"] = Examples([{"idx": 0, "sentence": " Good film ", "label": 1}],
                                 {"idx": None, "sentence": None, "label": SimpleNamespace(names=["neg", "pos"])})
    assert load_texts("hub:a") == [Labelled("Good film", None, "pos")]
    hub["b", "test"] = Examples([{"premise": "a", "hypothesis": "b", "label": 0}])
    assert load_texts("hub:b:test") == [Labelled("a", "b", "0")]


def test_entities_get_the_names_of_their_tags(hub):
    tags = SimpleNamespace(feature=SimpleNamespace(names=["O", "B-PER", "I-PER"]))
    hub["ner", "train"] = Examples([{"tokens": ["Anna", "Karenina", "left"], "ner_tags": [1, 2, 0]},
                                    {"tokens": [], "ner_tags": []}], {"tokens": None, "ner_tags": tags})
    (sentence,) = load_sentences("hub:ner")
    assert sentence.words == ("Anna", "Karenina", "left")
    assert sentence.entities == ("B-PER", "I-PER", "O")
    hub["ner", "train"] = Examples([{"tokens": ["Anna"], "ner_tags": ["I-PER"]}])
    assert load_sentences("hub:ner")[0].entities == ("B-PER",)


def test_questions_have_their_answers_and_positions(hub):
    hub["squad", "train"] = Examples([
        {"id": "q", "question": "Where?", "context": "Rome, Rome", "answers": {"text": ["Rome"], "answer_start": [6]}},
        {"id": "r", "question": "Who?", "context": "Rome", "answers": {"text": [], "answer_start": []}}])
    (question,), lost = load_questions("hub:squad")
    assert (question.id, question.start, question.answers, lost) == ("q", 6, ("Rome",), 1)


@pytest.mark.parametrize(("read", "example", "message"), [
    (load_texts, {"prose": "x", "label": 1}, "needs a text and its label, .*; its columns are prose, label"),
    (load_texts, {"sentence": "x", "label": -1}, "example 0: its label is -1; choose a split that has labels"),
    (load_texts, {"sentence": "", "label": 1}, "example 0: its sentence is empty"),
    (load_sentences, {"tokens": ["a"], "tags": [0]}, "needs words and their entities: tokens and ner_tags"),
    (load_sentences, {"tokens": ["a"], "ner_tags": []}, "two lists of the same length"),
    (load_sentences, {"tokens": ["a"], "ner_tags": [7]}, "the label '7' must be O, B-TYPE or I-TYPE"),
    (load_questions, {"question": "a", "context": "b"}, "needs question, context and answers"),
    (load_questions, {"question": "a", "context": "b", "answers": "c"}, "must have the lists text and answer_start"),
    (load_questions, {"question": "a", "context": "b", "answers": {"text": [None], "answer_start": [0]}},
     "each answer must have a text"),
])
def test_malformed_datasets_are_refused_by_name(hub, read, example, message):
    hub["x", "train"] = Examples([example])
    with pytest.raises(DataError, match=f"^hub:x.*{message}"):
        read("hub:x")


def test_an_empty_dataset_and_a_missing_library_are_refused(hub, monkeypatch):
    hub["x", "train"] = Examples([])
    with pytest.raises(DataError, match="hub:x has no examples"):
        load_texts("hub:x")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusError, match="needs the library datasets"):
        load_texts("hub:x")


def test_a_file_with_a_hub_name_is_read_as_a_file(hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hub:x").write_text("sentence\tlabel\nfrom a file\t1\n")
    assert load_texts("hub:x") == [Labelled("from a file", None, "1")]


def test_fine_tuning_does_not_confuse_two_datasets(hub, tmp_path, monkeypatch):
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "cache"))
    words = ["good", "bad"]
    MiniBERT(ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=16, vocab_size=7,
                         max_seq_length=8)).save(tmp_path / "model")
    WordPieceTokenizer([*SPECIAL_TOKENS, *words]).save(tmp_path / "model")
    both = [{"text": "good", "label": 1}, {"text": "bad", "label": 0}]
    for name, count in (("one", 8), ("two", 4)):
        hub[name, "train"] = Examples(both * count)
        hub[name, "test"] = Examples(both)

    def run(name):
        done = CliRunner().invoke(app, ["finetune", "--task", "classification", "--model", str(tmp_path / "model"),
                                        "--train", f"hub:{name}", "--dev", f"hub:{name}:test", "--no-random-init",
                                        "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    assert run("one")["notes"]["train"] == 16
    assert run("two")["notes"]["train"] == 8

"""Fine-tuning parts of the comprehensive evaluation: development and test sets."""

import json

import pytest
from suite_folder import make_model, make_tasks

from mini_bert import MiniBERT, WordPieceTokenizer
from mini_bert.evaluation.suite.context import QUICK, EvaluationContext
from mini_bert.evaluation.suite.parts import tuning
from mini_bert.evaluation.tasks.folder import find_tasks


@pytest.fixture
def context(tmp_path):
    folder = make_model(tmp_path / "model")
    make_tasks(tmp_path / "tasks")

    def make():
        return EvaluationContext(MiniBERT.load(folder), WordPieceTokenizer.load(folder), [],
                                 find_tasks(tmp_path / "tasks"), QUICK.capped(40), length=16, threads=1)

    return make


def test_entities_stop_by_the_development_set_and_are_measured_on_the_test_set(context, tmp_path):
    measured = tuning.entities(context())
    assert measured.details["en_b"]["measured_on"] == "test"
    assert measured.rows[0].sample == "20 examples to train, 12 to stop by, 12 to test"
    assert tuning.ONE_SET not in measured.notes
    (tmp_path / "tasks/en_b/en_b-ud-dev.conllu").unlink()
    alone = tuning.entities(context())
    assert alone.details["en_b"]["measured_on"] == "dev"
    assert alone.rows[0].sample == "20 examples to train, 12 to stop and to measure by"
    assert tuning.ONE_SET in alone.notes


def test_texts_note_a_reused_development_set_and_overlapping_examples(context):
    measured = tuning.texts(context())
    assert measured.rows[0].sample == "40 examples to train, 20 to stop and to measure by"
    assert f"sst2: {tuning.ONE_SET}" in measured.notes
    assert any(note.startswith("sst2: of dev, also in train: ") for note in measured.notes)


def test_an_unsuitable_folder_gives_a_note_and_does_not_affect_the_others(context, tmp_path):
    for name in ("aa", "zz"):
        (tmp_path / "tasks" / name).mkdir()
        for split in ("train", "dev"):
            (tmp_path / "tasks" / name / f"{split}.tsv").write_text("sentence\tscore\na\tx\nb\tx\n")
    measured = tuning.texts(context())
    assert list(measured.details) == ["sst2"]
    assert sum("zz was not measured: " in note or "aa was not measured: " in note for note in measured.notes) == 2
    assert any("has only the label 'x'" in note for note in measured.notes)


def test_questions_whose_answer_starts_the_text_are_kept(context, tmp_path):
    for name in ("big", "small"):
        path = tmp_path / f"tasks/squad/{name}.json"
        items = json.loads(path.read_text())
        path.write_text(json.dumps([item | {"context": f"{item['answer']} is it . {name} {item['id']}"}
                                    for item in items]))
    measured = tuning.questions(context())
    assert measured.rows[0].sample == "30 examples to train, 10 to stop and to measure by"
    assert not any("left out" in note for note in measured.notes)

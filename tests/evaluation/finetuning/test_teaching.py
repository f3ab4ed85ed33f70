"""A teacher for a task: its labels, its tokenizer, texts without labels, augmentation, and what is refused."""

import numpy as np
import pytest
from task_files import CONFIG, WORDS, run
from test_finetune_command import command, refused

from mini_bert import MiniBERT, WordPieceTokenizer
from mini_bert.core.gradcheck import relative_error
from mini_bert.core.task_model import TaskBatch, TaskModel
from mini_bert.errors import ConfigError
from mini_bert.evaluation.formats.tables import Labelled
from mini_bert.evaluation.tasks.predict import row_scores
from mini_bert.evaluation.tasks.storage import load_task, save_task
from mini_bert.evaluation.tasks.task_names import Classification
from mini_bert.evaluation.tasks.teaching import TeachingConfig, label_order, taught
from mini_bert.objectives.distillation.matching import DISTANCES, softened
from mini_bert.objectives.distillation.taught_task import TaughtBatch, TaughtTask
from mini_bert.objectives.objective import PassOptions
from mini_bert.text.augmentation import augmented
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.workers import Workers


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """A task model with another vocabulary, whose labels are in another order: it knows that `good` is pos."""
    folder = tmp_path_factory.mktemp("teacher") / "model"
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *reversed(WORDS)])
    model = TaskModel(MiniBERT(CONFIG, seed=3), "sequence", 2, seed=3)
    save_task(folder, model, tokenizer, "classification", ["pos", "neg"], {})
    return folder


def task(data, tokenizer, ending=".tsv") -> Classification:
    return Classification(data / f"train{ending}", data / f"dev{ending}", tokenizer, CONFIG, max_samples=20)


def test_the_teachers_scores_are_those_of_its_own_tokenizer_in_the_order_of_the_datas_labels(data, tokenizer, teacher):
    made, saved = task(data, tokenizer), load_task(teacher)
    found = taught(made, saved, TeachingConfig(), Workers(2))
    assert made.labels == ["neg", "pos"]
    own = Classification(data / "train.tsv", data / "dev.tsv", saved.tokenizer, CONFIG, max_samples=20)
    expected = np.concatenate(row_scores(saved.model, own.train, Workers(1)))[:, ::-1]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-5, atol=1e-6)
    assert found.labelled.all()
    assert np.array_equal(found.collate(np.array([3, 1])).scores, found.scores[[3, 1]])


def test_texts_without_labels_and_made_ones_have_the_teachers_scores_alone(data, tokenizer, teacher):
    made = task(data, tokenizer)
    known = {record.text for record in made.texts()}
    others = [Labelled("anna lives in paris", None, ""), Labelled("anna lives in paris", None, ""),
              Labelled(next(iter(known)), None, "neg")]
    found = taught(made, load_task(teacher), TeachingConfig(augment=8), Workers(1), unlabelled=others)
    assert found.labelled.sum() == 20
    assert found.labelled[:20].all()
    assert len(found.scores) == len(found.encoded.rows) > 30
    assert tokenizer.encode("anna lives in paris") == found.encoded.rows[-1]        # once, and no text that is known
    assert any(tokenizer.vocabulary.mask in row for row in found.encoded.rows[20:])
    part = found.collate(np.arange(15, 25))
    model = TaskModel(MiniBERT(CONFIG), "sequence", 2)
    assert found.objective(model, False).counts(part) == {"teacher": 10, "task": 5}


def test_of_a_pair_one_text_is_changed_at_a_time(data, tokenizer, tmp_path):
    model = TaskModel(MiniBERT(CONFIG, seed=3), "sequence", 2)
    save_task(tmp_path / "pairs", model, tokenizer, "pair", ["both", "other"], {}, pairs=True)
    made, saved = task(data, tokenizer, ".pairs.tsv"), load_task(tmp_path / "pairs")
    found = taught(made, saved, TeachingConfig(augment=4), Workers(1))
    assert not found.labelled.all()
    with pytest.raises(ConfigError, match="without labels must be pairs"):
        taught(made, saved, TeachingConfig(), Workers(1), unlabelled=[Labelled("anna", None, "")])


def test_augmentation_hides_words_and_takes_parts_with_keyed_draws():
    texts = ["one two three four five six seven eight nine ten"] * 2 + ["alone", ""]
    found = augmented(texts, 400, seed=1)
    assert found == augmented(texts, 400, seed=1)
    assert found[0] != found[1]
    assert found[3] == []
    assert set(found[2]) == {"[MASK]"}
    for text in found[0]:
        words = text.split()
        at = [start for start in range(11 - len(words))
              if all(a in ("[MASK]", b) for a, b in zip(words, texts[0].split()[start:], strict=False))]
        assert at
        assert len(words) == 10 or len(words) <= 5
    assert len(set(found[0])) == len(found[0])
    assert texts[0] not in found[0]


def test_labels_are_matched_by_name():
    class Saved:
        labels = ["LABEL_0", "LABEL_1"]

    assert label_order(Saved, ["neg", "pos"]) == [0, 1]
    Saved.labels = ["Pos", "NEG"]
    assert label_order(Saved, ["neg", "pos"]) == [1, 0]
    Saved.labels = ["good", "bad"]
    with pytest.raises(ConfigError, match="The teacher has the labels good, bad, and the data neg, pos"):
        label_order(Saved, ["neg", "pos"])


@pytest.mark.parametrize("distance", [softened(2.5), DISTANCES["squared"]], ids=["kl", "squared"])
@pytest.mark.parametrize("weight", [0.7, 1.0])
def test_the_gradient_of_labels_and_teacher_agrees_with_finite_differences(distance, weight, rng):
    config = type(CONFIG).from_dict({**CONFIG.to_dict(), "activation": "gelu", "dropout": 0.1, "init_std": 0.3})
    model = TaskModel(MiniBERT(config, dtype=np.float64), "sequence", 3, dropout=0.2)
    objective = TaughtTask(model, PassOptions(), distance, weight)
    mask = np.arange(6) < np.array([6, 3, 4, 2])[:, None]
    part = TaughtBatch(TaskBatch(rng.integers(5, 21, (4, 6)), mask, rng.integers(0, 3, 4)), rng.standard_normal((4, 3)),
                       np.array([True, False, True, True]))
    assert objective.counts(part) == {"teacher": 4, **({"task": 3} if weight < 1 else {})}
    factors = dict(zip(objective.losses, (1.3, 0.6), strict=False))

    def loss(grads):
        sums = objective.add_gradients(part, grads, (0, 1), factors)
        return sum(factors[name] * value for name, value in sums.items())

    grads, nothing = model.params.zeros_like(), model.params.zeros_like()
    loss(grads)
    for name in ("task_W", "W_Q_0", "token_embeddings"):
        value, way = model.params[name], rng.standard_normal(model.params[name].shape)
        before = value.copy()
        ends = []
        for step in (1e-5, -1e-5):
            value[...] = before + step * way
            ends.append(loss(nothing))
        value[...] = before
        slope = (ends[0] - ends[1]) / 2e-5
        assert relative_error(np.array([(grads[name] * way).sum()]), np.array([slope])) < 1e-6


def test_the_command_learns_from_a_teacher_and_compares_with_labels_alone(data, teacher, tmp_path):
    taught_by = [*command(data, teacher=teacher, augment=2, unlabelled=data / "dev.tsv"), "--learning-rate", "0.01"]
    found = run(*taught_by, "--out", tmp_path / "student", "--seeds", "2")
    assert found["notes"]["texts that the teacher labelled"] > 40
    assert len(found["figures"]["accuracy"]) == len(found["labels_alone"]["accuracy"]) == 2
    assert found["labels_alone"] == run(*command(data), "--learning-rate", "0.01", "--seeds", "2")["figures"]
    assert load_task(tmp_path / "student").labels == ["neg", "pos"]
    assert run(*taught_by, "--no-labels-alone")["labels_alone"] == {}
    again = run(*taught_by, "--threads", "1", "--no-labels-alone", "--fresh")
    assert again["figures"]["accuracy"][0] == found["figures"]["accuracy"][0]


def test_what_cannot_be_taught_is_refused_before_training(data, teacher, tmp_path, monkeypatch):
    monkeypatch.setattr("mini_bert.api.finetune.run_task", lambda *a, **b: pytest.fail("it was trained"))
    for options, said in (({"teacher-weight": 0.5}, "teacher_weight needs a teacher; name one with teacher"),
                          ({"augment": 2}, "augment needs a teacher"),
                          ({"unlabelled": data / "dev.tsv"}, "unlabelled needs a teacher"),
                          ({"teacher": data / "model"}, "is not a task model"),
                          ({"teacher": teacher, "teacher-weight": 2}, "weight must be above 0 and at most 1, not 2"),
                          ({"teacher": teacher, "teacher-loss": "mse"}, "must be one of kl, squared, not 'mse'"),
                          ({"teacher": teacher, "teacher-loss": "squared", "temperature": 3}, "kl, not to squared"),
                          ({"teacher": teacher, "temperature": 0}, "temperature must be above 0, not 0")):
        assert said in refused(*command(data, **options))
    assert "give only one of the two" in refused(*command(data, teacher=teacher), "--curve")
    assert "A teacher helps only with tasks that have one class for each text" in refused(
        *command(data, ".conll", task="ner", teacher=teacher))
    assert "the data both, other" in refused(*command(data, ".pairs.tsv", teacher=teacher))

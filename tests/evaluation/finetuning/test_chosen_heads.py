"""Fine-tuning with a head and an optimiser that a word chooses, built-in or from a file of your own."""

import json

import numpy as np
import pytest
from task_files import CONFIG, run
from test_finetune_command import command, refused

import mini_bert.cli.train.finetune  # noqa: F401  (its words are registered before any test restores the registry)
from mini_bert import CheckpointError, MiniBERT, import_file
from mini_bert.core.registry import restored_registry
from mini_bert.core.task_model import TaskModel
from mini_bert.evaluation.tasks.storage import load_task, save_task
from mini_bert.templates import template


@pytest.fixture(autouse=True)
def clean_registry():
    with restored_registry():
        yield


def written(tmp_path, kind, change=str):
    file = tmp_path / f"{kind}_of_mine.py"
    file.write_text(change(template(kind, "mine")))
    return file


def test_another_head_of_the_package_is_trained_and_saved(data, tmp_path):
    found = run(*command(data, head="first_token", out=tmp_path / "task"))
    saved = json.loads((tmp_path / "task/task.json").read_text())
    assert (found["head"], saved["head"]) == ("first_token", "first_token")
    assert "plugins" not in saved
    assert load_task(tmp_path / "task").model.head_name == "first_token"
    assert run(*command(data))["head"] == "sequence"


def test_a_head_of_ones_own_is_trained_saved_opened_and_used(data, tmp_path):
    file, out = written(tmp_path, "task_head"), tmp_path / "task"
    with restored_registry():
        run(*command(data, head="mine", out=out), "--import", file)
        assert json.loads((out / "task.json").read_text())["plugins"] == {"task_head: mine": file.name}
        inside = run("predict", "--model", out, "good film")["answers"]
        weights = load_task(out).model.params.flat.copy()
    with pytest.raises(CheckpointError, match=f"needs the task_head 'mine', which {file.name} registered .*--import"):
        load_task(out)
    assert file.name in refused("predict", "--model", out, "good film")
    assert run("predict", "--model", out, "good film", "--import", file)["answers"] == inside
    np.testing.assert_array_equal(load_task(out).model.params.flat, weights)


@pytest.mark.parametrize(("ending", "task", "base"), [(".conll", "ner", "TokenHead"), (".json", "qa", "SpanHead")])
def test_a_head_says_itself_how_its_predictions_are_read(data, tmp_path, ending, task, base):
    file = tmp_path / "own.py"
    file.write_text(f"from mini_bert import register\nfrom mini_bert.core.modules.heads.token_tasks import {base}\n"
                    f"@register('task_head', 'own')\nclass Own({base}):\n    pass\n")
    usual, own = (run(*command(data, ending, task=task, out=tmp_path / name), *more)
                  for name, more in (("usual", ()), ("own", ("--head", "own", "--import", file))))
    assert own["figures"] == usual["figures"]
    line = "who lives in paris\tanna lives in paris" if task == "qa" else "anna lives in paris"
    assert run("predict", "--model", tmp_path / "own", line)["answers"] == \
        run("predict", "--model", tmp_path / "usual", line)["answers"]


def test_a_head_that_ties_its_matrix_to_the_encoder_is_saved_and_opened(tmp_path, tokenizer):
    file = tmp_path / "tied.py"
    file.write_text("""
from mini_bert import register
from mini_bert.core.modules.heads.token_tasks import TokenHead
from mini_bert.core.params import Tie
@register('task_head', 'tied')
class Tied(TokenHead):
    def layout(self):
        weights, bias = self.linear.layout()
        yield Tie(weights.name, 'token_embeddings', transposed=True)
        yield bias
""")
    import_file(file)
    model = TaskModel(MiniBERT(CONFIG), "tied", CONFIG.vocab_size)
    model.params["task_b"][...] = 3
    save_task(tmp_path / "task", model, tokenizer, "any", list(tokenizer.vocabulary), {})
    np.testing.assert_array_equal(load_task(tmp_path / "task").model.params.flat, model.params.flat)


@pytest.mark.parametrize(("head", "said"), [
    ("tokens", "The head tokens gives one label per chosen token; this task needs one label per sequence."),
    ("span", "this task needs one label per sequence"), ("sequnce", "the nearest is 'sequence'"),
    ("sequence(size=3)", "its options are bias, pooler")])
def test_a_head_that_does_not_fit_the_task_is_refused_before_the_data_is_read(data, head, said):
    assert said in refused(*command(data, task="classification", head=head, train="nowhere.tsv"))


def test_the_optimiser_is_chosen_by_its_word(data, tmp_path):
    usual = run(*command(data), "--fresh")
    other = run(*command(data, optimiser="sgd(momentum=0.5)"), "--fresh")
    assert usual["figures"] == run(*command(data, optimiser="adamw"), "--fresh")["figures"]
    assert set(other["figures"]) == set(usual["figures"])
    run(*command(data, optimiser="mine(beta=0.5)", out=tmp_path / "own"), "--import", written(tmp_path, "optimiser"))
    run(*command(data, out=tmp_path / "usual"))
    own, standard = (load_task(tmp_path / name).model.params.flat for name in ("own", "usual"))
    assert not np.array_equal(own, standard)
    assert "optimiser: 'adam' is not a choice" in refused(*command(data, optimiser="adam"))
    assert "optimiser cannot be set with --set; use the option --optimiser" in refused(
        *command(data), "--set", "optimiser=sgd")


def test_a_config_file_chooses_head_and_optimiser(data, tmp_path):
    (tmp_path / "options.yaml").write_text("head: first_token\noptimiser: sgd\nset:\n  dropout: 0.0\n")
    found = run(*command(data, config=tmp_path / "options.yaml"))
    assert found["head"] == "first_token"
    same = run(*command(data, head="first_token", optimiser="sgd"), "--set", "dropout=0.0")
    assert found["figures"] == same["figures"]


def test_a_result_is_computed_again_when_a_file_of_ones_own_has_changed(data, tmp_path, monkeypatch):
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "cache"))
    for change, results in ((str, 1), (str, 1), (lambda text: text.replace("maximum", "minimum"), 2)):
        run(*command(data, head="mine"), "--import", written(tmp_path, "task_head", change))
        assert len(list((tmp_path / "cache").iterdir())) == results


def test_a_task_of_ones_own_is_chosen_by_its_word(data, tmp_path):
    file = tmp_path / "own_task.py"
    file.write_text("from mini_bert import register\nfrom mini_bert.evaluation.tasks.texts import Classification\n"
                    "@register('task', 'short_texts')\nclass Short(Classification):\n"
                    "    head = 'first_token'\n"
                    "    def baselines(self):\n        return {'majority': self.majority()}\n")
    found = run(*command(data, task="short_texts"), "--import", file)
    assert (found["task"], found["head"], list(found["baselines"])) == ("short_texts", "first_token", ["majority"])
    assert "the nearest is 'short_texts'" in refused(*command(data, task="shorttexts"))

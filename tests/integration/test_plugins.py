"""A variant of your own is one file: proved, trained, saved, opened and explored like a built-in."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from mini_bert import CheckpointError, ConfigError, MiniBERT, ModelConfig, WordPieceTokenizer, import_file, load
from mini_bert.checks.check_all import check_all
from mini_bert.cli.app import app
from mini_bert.core.registry import register, restored_registry, words
from mini_bert.core.task_model import TaskModel
from mini_bert.explorer.answers import ANSWERS
from mini_bert.explorer.session import Session
from mini_bert.templates import KINDS, template
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.training.config import TrainingConfig, make_optimiser
from mini_bert.training.runs.run import resume_run, start_run

WORDS = ["the", "a", "cat", "dog", "mat", "sat", "ran", "on", "under", "big", "red", "old", "and"]
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_size": 16, "intermediate_size": 32, "max_seq_length": 16,
         "vocab_size": len(SPECIAL_TOKENS) + len(WORDS)}
STEPS = {"steps": 10, "batch_size": 4, "micro_batch_size": 2, "warmup_steps": 2, "log_every": 5}
# what a config says to use it, the subject of its gradient check, and what the explorer shows of it
MODEL = {"activation": ({"activation": "mine"}, "mine", ("ffn_activation_0", "max(u, 0)^2")),
         "score_term": ({"score_terms": "rotary + mine(start=-2.0)"}, "mine", ("mine_bias_1", "distances(slope, t)")),
         "block": ({"block": "mine"}, "mine", ("hidden_1", "x_1 + O + f"))}
TRAINING = {"objective": ({"objective": "mine"}, "objectives"), "optimiser": ({"optimiser": "mine(beta=0.8)"}, None)}


@pytest.fixture(autouse=True)
def clean_registry():
    with restored_registry():
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(0)
    text = "\n\n".join(" ".join(rng.choice(WORDS, 12)) for _ in range(60))
    (folder / "text.txt").write_text(text)
    prepare([str(folder / "text.txt")], WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS]), folder / "corpus", heldout=0.2,
            workers=1)
    return folder / "corpus"


def written(tmp_path, kind):
    file = tmp_path / f"{kind}_of_mine.py"
    file.write_text(template(kind, "mine"))
    return file


def trained(corpus, out, model=None, training=None):
    config = ModelConfig.from_dict({**SIZES, **(model or {})})
    settings = TrainingConfig.from_dict({**STEPS, **(training or {})})
    trainer = start_run(config, settings, corpus, out)
    trainer.train()
    return trainer


@pytest.mark.parametrize("kind", MODEL)
def test_a_part_of_a_model_from_one_file(tmp_path, corpus, kind):
    changes, subject, (step, formula) = MODEL[kind]
    file = written(tmp_path, kind)
    with restored_registry():
        import_file(file)
        results = list(check_all([subject]))
        assert results
        assert all(result.passed for result in results)
        trainer = trained(corpus, tmp_path / "run", model=changes)
        model = load(tmp_path / "run" / "final")
        np.testing.assert_array_equal(model.params.flat, trainer.model.params.flat)
        answer = ANSWERS["forward"](Session(model, WordPieceTokenizer.load(tmp_path / "run" / "final")),
                                    {"text": "the cat sat on the mat"})
        shown = {found["name"]: found["formula"]["text"] for found in answer["steps"]}
        assert formula in shown[step]
    with pytest.raises(CheckpointError, match=f"'mine.*{file.name} registered when it was saved.*--import"):
        load(tmp_path / "run" / "final")
    import_file(file)
    assert load(tmp_path / "run" / "final").config == model.config


def test_a_part_that_remembers_its_last_pass_fails_the_check(tmp_path):
    file = written(tmp_path, "block")
    kept, used = "normed, ln1 = self.ln1.forward", "attention, ffn, ln1 = cache"
    text = file.read_text()
    assert kept in text
    assert used in text
    file.write_text(text.replace(kept, "normed, self.kept = self.ln1.forward").replace("ffn, ln1)}", "ffn, None)}")
                    .replace(used, "attention, ffn, _ = cache").replace("(dnormed, ln1,", "(dnormed, self.kept,"))
    import_file(file)
    failed = [result.case for result in check_all(["mine"]) if not result.passed]
    assert set(failed) == {"another pass in between"}


@pytest.mark.parametrize("kind", TRAINING)
def test_a_way_of_training_from_one_file(tmp_path, corpus, kind):
    changes, subject = TRAINING[kind]
    file = written(tmp_path, kind)
    with restored_registry():
        import_file(file)
        if subject:
            assert all(result.passed for result in check_all([subject]))
        whole = trained(corpus, tmp_path / "whole", training=changes).model.params.flat
        assert np.isfinite(whole).all()
        assert not np.array_equal(whole, trained(corpus, tmp_path / "usual").model.params.flat)
        settings = TrainingConfig.from_dict({**STEPS, "threads": 2, **changes})
        stopped = start_run(ModelConfig.from_dict(SIZES), settings, corpus, tmp_path / "stopped")
        steps = stopped.steps()
        for _ in range(4):
            next(steps)
        steps.close()
        stopped.save()
        stopped.lock.release()
    with pytest.raises(CheckpointError, match=f"needs the {kind} 'mine', which {file.name} registered"):
        resume_run(tmp_path / "stopped", threads=1)
    import_file(file)
    resumed = resume_run(tmp_path / "stopped", threads=1)
    resumed.train()
    np.testing.assert_array_equal(resumed.model.params.flat, whole)


def test_a_head_from_one_file(tmp_path):
    import_file(written(tmp_path, "task_head"))
    results = [result for result in check_all(["tasks"]) if result.subject == "task head: mine"]
    assert results
    assert all(result.passed for result in results)
    assert TaskModel(MiniBERT(ModelConfig.from_dict(SIZES)), "mine", 3).task.outputs == 3


def test_the_command_line_takes_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    assert run(app, ["new", "variant", "squared_relu"]).exit_code == 0
    assert "exists already" in str(run(app, ["new", "variant", "squared_relu"]).exception)
    found = run(app, ["gradcheck", "squared_relu", "--import", "squared_relu.py", "--json"])
    assert found.exit_code == 0
    assert {result["subject"] for result in json.loads(found.stdout)["results"]} == \
        {"squared_relu", "activation: squared_relu"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_template_that_registers_its_word(tmp_path, kind):
    import_file(written(tmp_path, kind))
    assert "mine" in words(kind)


@pytest.mark.parametrize(("text", "said"), [
    ("import nonsense_of_mine", "line 1 fails: ModuleNotFoundError"), ("x = (", "fails: SyntaxError"),
    ("from mini_bert import register\nregister('activaton', 'mine')", "no slot 'activaton'; the nearest is"),
    ("from mini_bert import register\nregister('activation', 'gelu')(1)", "'gelu' is registered already"),
    ("from mini_bert import register\nregister('activation', 'Mine')(1)", "starts with a small letter")])
def test_a_file_that_fails_is_answered_in_a_sentence(tmp_path, text, said):
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ConfigError, match=said):
        import_file(tmp_path / "mine.py")


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no file"):
        import_file(tmp_path / "absent.py")
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(ConfigError, match=r"must end in \.py"):
        import_file(tmp_path / "mine.txt")


def test_options_that_a_word_does_not_take_are_refused():
    with pytest.raises(ConfigError, match=r"rotary\(speed=3\) cannot be made: .* its options are base, interleaved"):
        MiniBERT(ModelConfig.from_dict({**SIZES, "score_terms": "rotary(speed=3)"}))
    with pytest.raises(ConfigError, match=r"layernorm\(1\) cannot be made: each option needs its name"):
        MiniBERT(ModelConfig.from_dict({**SIZES, "norm": "layernorm(1)"}))
    with pytest.raises(ConfigError, match="its options are none"):
        MiniBERT(ModelConfig.from_dict({**SIZES, "block": "post_ln(layer=3)"}))
    with pytest.raises(ConfigError, match=r"its options are padding, bias, pooler, transform, norm, transform_bias\.$"):
        TaskModel(MiniBERT(ModelConfig.from_dict(SIZES)), "last_token(size=3)", 2)
    params = MiniBERT(ModelConfig.from_dict(SIZES)).params
    with pytest.raises(ConfigError, match="epsilon is set, but the optimiser sgd takes none"):
        make_optimiser(TrainingConfig(optimiser="sgd", epsilon=1e-6), params)


@pytest.mark.parametrize(("terms", "said"), [
    ("rotary(base=fast)", "base must be a number above zero"), ("rotary(base=0)", "base must be a number above zero"),
    ("relative_keys(reach=1.5)", "reach must be a whole number"), ("relative_keys(reach=-1)", "reach must be a whole"),
    ("relative_keys(reach=3) + relative_keys(reach=2)", "Two parts of the model have a parameter relative_keys_0"),
    ("rotary(base=1, base=2)", "gives base twice"), ("rotary(base=1", r"'\)' is expected at its end"),
    ("0.5 rotary", "a word is expected in place of '0.5'"),
    ("rotary(", "'\\)' is expected|',' is expected|cannot be read"), ("rotary +", "a word is expected at its end"),
    ("rotary" + " " * 1000, "at most 1,000 characters")])
def test_wrong_options_are_answered_in_a_sentence(terms, said):
    with pytest.raises(ConfigError, match=said):
        MiniBERT(ModelConfig.from_dict({**SIZES, "score_terms": terms}))


def test_options_of_a_word_that_takes_none_are_refused():
    with pytest.raises(ConfigError, match="relu takes no options"):
        MiniBERT(ModelConfig.from_dict({**SIZES, "activation": "relu(x=3)"}))


@pytest.mark.parametrize("kind", MODEL)
def test_every_view_of_the_explorer_shows_a_part_from_one_file(tmp_path, kind):
    import_file(written(tmp_path, kind))
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])
    session = Session(MiniBERT(ModelConfig.from_dict({**SIZES, **MODEL[kind][0]})), tokenizer)
    query = {"text": "the cat sat", "mask": "2"}
    steps = ANSWERS["forward"](session, query)["steps"]
    assert ANSWERS["backward"](session, query)["loss"] > 0
    for step in steps[1:]:
        index = ",".join("0" for _ in step["shape"])
        cell = ANSWERS["cell"](session, {**query, "name": step["name"], "index": index})
        assert cell["total"] == pytest.approx(cell["value"], rel=1e-4, abs=1e-5)


def test_a_word_of_this_package_is_not_taken_for_a_plugin(tmp_path):
    MiniBERT(ModelConfig.from_dict({**SIZES, "score_terms": "rotary"})).save(tmp_path / "model")
    assert "plugins" not in json.loads((tmp_path / "model" / "config.json").read_text())


def test_registering_from_a_test_is_undone():
    with restored_registry():
        register("schedule", "mine")(lambda progress, share: 1.0)
        assert "mine" in words("schedule")
    assert "mine" not in words("schedule")

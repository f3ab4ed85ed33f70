"""Settings of a run, from presets, files and the command line."""

import pytest

from mini_bert import ConfigError, InputError, ModelConfig
from mini_bert.training.config import TrainingConfig, load_run_config, parse_duration


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("1h", 3600), ("1h30m", 5400),
                                               ("2d", 172800), ("45", 45), ("1.5h", 5400)])
def test_lengths_of_time(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "1x", "0m", "-5m", "m"])
def test_what_is_no_length_of_time_is_refused(text):
    with pytest.raises(ConfigError, match="90s, 30m"):
        parse_duration(text)


def test_changes_come_over_presets_and_are_checked():
    model, training = load_run_config("mini", ["training.learning_rate=2e-3", "model.dropout=0.1", "training.steps=7"])
    assert (training.learning_rate, training.steps, model.dropout, model.hidden_size) == (2e-3, 7, 0.1, 192)
    for change, words in (("training.lerning_rate=1", "nearest valid key is 'learning_rate'"),
                          ("steps=3", "cannot be changed by"), ("training.freeze", "cannot be changed by"),
                          ("training.steps=many", "whole number"), ("training.schedule=stairs", "linear"),
                          ("training.masking_unit=letter", "token, word, span")):
        with pytest.raises((ConfigError, InputError), match=words):
            load_run_config("mini", [change])


def test_a_file_has_both_sections(tmp_path):
    (tmp_path / "a.yaml").write_text("model: debug\ntraining:\n  learning_rate: 1e-4\n")
    model, training = load_run_config(tmp_path / "a.yaml")
    assert (model.hidden_size, training.learning_rate) == (16, 1e-4)
    (tmp_path / "b.yaml").write_text("model:\n  num_layers: 2\noptimiser: {}\n")
    with pytest.raises(ConfigError, match="sections model and training"):
        load_run_config(tmp_path / "b.yaml")


def test_what_depends_on_the_machine_is_written_out():
    resolved = TrainingConfig(batch_size=32, threads=2).resolved(ModelConfig())
    assert (resolved.micro_batch_size, resolved.max_seq_length, resolved.threads) == (16, 64, 2)
    assert TrainingConfig(batch_size=32).resolved(ModelConfig()).threads >= 1
    with pytest.raises(ConfigError, match="max_seq_length=64"):
        TrainingConfig(max_seq_length=65).resolved(ModelConfig())


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"layer_decay": 0.0}, {"final_rate": 2.0}, {"budget": "later"},
                                   {"masking_rate": 1.5}, {"learning_rate": float("nan")}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises((ConfigError, InputError)):
        TrainingConfig(**wrong)

"""--config: options from a YAML file."""

import json

import pytest
from typer.testing import CliRunner

from mini_bert.cli.app import app
from mini_bert.configs import load_options
from mini_bert.errors import CheckpointError, ConfigError
from mini_bert.training.finetune import FinetuneConfig

runner = CliRunner()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("The king of France was old. The river was wide and the road was long.\n" * 40)
    (tmp_path / "train.tsv").write_text("sentence\tlabel\n" + "good film\t1\nbad film\t0\n" * 4)
    return tmp_path


def evaluate(folder, content, *arguments):
    (folder / "config.yaml").write_text(content)
    return runner.invoke(app, ["evaluate", "--config", "config.yaml", "--json", *arguments])


def test_options_come_from_the_file_and_the_command_line_wins(folder):
    content = "data: text.txt\nonly: [masked]\nmax-samples: 4\nseed: 3\nthreads: 1\n"
    found = json.loads(evaluate(folder, content).stdout)
    assert (found["data"], found["max_samples"], found["seed"]) == (["text.txt"], 4, 3)
    assert {row["part"] for row in found["summary"]} == {"masked"}
    assert json.loads(evaluate(folder, content, "--seed", "5", "--max-samples", "8").stdout)["seed"] == 5


@pytest.mark.parametrize(("content", "words"), [
    ("layers: 3", "config.yaml has the key 'layers', which is not an option of evaluate; the options are data, model"),
    ("config: other.yaml", "has the key 'config'"), ("- data", "must map names of options to values"),
    ("data: [", "is not valid YAML")])
def test_a_bad_file_is_refused_with_one_sentence(folder, content, words):
    error = evaluate(folder, content).exception
    assert isinstance(error, ConfigError)
    assert words in str(error)


def test_values_are_checked_like_those_of_the_command_line(folder):
    result = evaluate(folder, "max_samples: many")
    assert result.exit_code == 2
    assert "--max-samples" in result.output


def test_a_missing_file_names_the_shipped_ones():
    with pytest.raises(ConfigError, match="no config file nowhere; name a YAML file, or one of downstream, intrinsic, "
                                          "probing, finetuning"):
        load_options("nowhere")


@pytest.mark.parametrize("arguments", [
    ["evaluate", "--config", "intrinsic"], ["evaluate", "--config", "downstream"],
    ["probe", "pos", "--config", "probing", "--train", "x.conllu", "--test", "x.conllu"],
    ["finetune", "--config", "finetuning", "--train", "train.tsv", "--dev", "train.tsv"]])
def test_the_shipped_files_are_accepted_by_their_commands(folder, arguments):
    error = runner.invoke(app, [*arguments, "--model", "nowhere"]).exception
    assert isinstance(error, CheckpointError)             # the options were accepted, but there is no such model
    assert "nowhere" in str(error)


def test_the_shipped_fine_tuning_settings_are_valid_and_a_mapping_is_a_list_of_settings(folder):
    FinetuneConfig.from_dict(load_options("finetuning")["set"])
    (folder / "config.yaml").write_text("train: train.tsv\ndev: train.tsv\nepochs: 1\nthreads: 1\nrandom_init: false\n"
                                        "set: {layer_decay: 0.9, patience: 1}\n")
    found = runner.invoke(app, ["finetune", "--config", "config.yaml", "--json"])
    assert json.loads(found.stdout)["from_random"] == {}
    (folder / "config.yaml").write_text("train: train.tsv\ndev: train.tsv\nset: {depth: 2}\n")
    refused = runner.invoke(app, ["finetune", "--config", "config.yaml"])
    assert "depth" in str(refused.exception)


def test_settings_of_the_command_line_join_those_of_the_file_and_win(folder, monkeypatch):
    seen = []

    def computed(what, options, *rest, **more):
        seen.append(options["config"])
        raise ConfigError("enough")

    monkeypatch.setattr("mini_bert.cli.train.finetune.cached_result", computed)
    (folder / "config.yaml").write_text("set:\n  dropout: 0.25\n  patience: 7\n")
    command = ["finetune", "--config", "config.yaml", "--train", "train.tsv", "--dev", "train.tsv"]
    for more in ((), ("--set", "patience=2", "--set", "layer_decay=0.5")):
        assert str(runner.invoke(app, [*command, *more]).exception) == "enough"
    assert [(found["dropout"], found["patience"], found["layer_decay"]) for found in seen] == \
        [(0.25, 7, 1.0), (0.25, 2, 0.5)]

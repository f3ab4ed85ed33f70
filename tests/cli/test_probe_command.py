"""mini-bert probe."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.cli.measure.probe import probe_command
from mini_bert.cli.shared_options import with_shared_options
from mini_bert.errors import DataError, InputError
from mini_bert.text.vocabulary import SPECIAL_TOKENS

WORDS = [f"w{i}" for i in range(8)]
app = typer.Typer()
app.command("probe")(with_shared_options(probe_command, imports=True))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("probe")
    MiniBERT(ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=16, vocab_size=13,
                         max_seq_length=16)).save(made / "model")
    WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS]).save(made / "model")
    rng = np.random.default_rng(0)
    for name, count in (("train", 60), ("test", 20)):
        lines, columns = [], []
        for _ in range(count):
            for i, word in enumerate(rng.integers(0, 8, 6).tolist()):
                lines.append("\t".join([str(i + 1), WORDS[word], "_", "AB"[word % 2], "_", "_", str(i),
                                        "dep" if i else "root", "_", "_"]))
                columns.append(f"{WORDS[word]} {'B-X' if word == 3 else 'O'}")
            lines.append("")
            columns.append("")
        (made / f"{name}.conllu").write_text("\n".join(lines))
        (made / f"{name}.txt").write_text("\n".join(columns))
    return made


def run(folder, task, *more, suffix="conllu"):
    return CliRunner().invoke(app, [task, "--model", str(folder / "model"), "--train", str(folder / f"train.{suffix}"),
                                    "--test", str(folder / f"test.{suffix}"), "--seeds", "2", "--threads", "1", *more])


def test_the_table_has_baselines_and_a_verdict(folder):
    result = run(folder, "pos", "--layers", "embeddings, hidden_0")
    assert result.exit_code == 0, result.output
    for part in ("majority", "word-type memory", "linear, hidden_0", "learned mix", "random init", "selectivity",
                 "best layer by dev, linear:", "note: train: "):
        assert part in result.output


def test_json_has_everything_and_a_second_run_uses_the_cache(folder):
    data = json.loads(run(folder, "pos", "--json").stdout)
    assert {"model", "train", "test", "seed", "task", "baselines", "rows", "verdict", "notes", "sets"} <= set(data)
    import mini_bert.cli.measure.probe as module
    computed, module.probe = module.probe, None
    try:
        assert json.loads(run(folder, "pos", "--json").stdout) == data
    finally:
        module.probe = computed
    again = json.loads(run(folder, "pos", "--json", "--fresh").stdout)
    assert again | {"cost": data["cost"]} == data             # all but the computation time
    fewer = json.loads(run(folder, "pos", "--json", "--max-samples", "10").stdout)["sets"]
    assert fewer["train"]["sentences"] < 10                   # ten, of which a tenth is the development set
    assert fewer["test"]["sentences"] == 20                   # the test set stays whole


def test_the_structural_probe_reports_a_curve_over_ranks(folder):
    result = run(folder, "dep", "--dev", str(folder / "test.conllu"), "--rank", "4")
    assert result.exit_code == 0, result.output
    for part in ("linear chain", "UUAS", "random init, embeddings", "by rank of the probe",
                 "best layer by dev, rank 4"):
        assert part in result.output
    assert "set aside" not in result.output


def test_named_entities_can_come_from_columns(folder):
    result = run(folder, "ner", suffix="txt")
    assert result.exit_code == 0, result.output
    assert "entity F1" in result.output


def test_invalid_input_is_refused(folder, tmp_path):
    assert isinstance(run(folder, "pos", "--layers", "top").exception, InputError)
    assert "pos, dep, deplabel, ner" in str(run(folder, "tense").exception)
    assert "There is no file" in str(run(folder, "pos", suffix="none").exception)
    assert "no named entities" in str(run(folder, "ner").exception)
    (tmp_path / "x.conllu").write_text("1\ta\n")
    broken = run(folder, "pos", "--dev", str(tmp_path / "x.conllu")).exception
    assert isinstance(broken, DataError)
    assert "x.conllu, line 1: there are 2 columns" in str(broken)


def test_hub_names_of_other_tasks_are_refused(folder):
    error = run(folder, "pos", "--train", "hub:universal_dependencies").exception
    assert isinstance(error, InputError)
    assert "hub: names give texts with labels, named entities or questions" in str(error)
    assert "pos is read from CoNLL-U; name a file" in str(error)


def test_entities_of_a_treebank_are_mentions_and_need_a_header(folder, tmp_path):
    text = (folder / "train.conllu").read_text().replace(
        "\tw3\t_\tB\t_\t_\t0\troot\t_\t_", "\tw3\t_\tB\t_\t_\t0\troot\t_\tEntity=(1-x)")
    (tmp_path / "x.conllu").write_text(text)
    asked = ("--train", str(tmp_path / "x.conllu"), "--test", str(tmp_path / "x.conllu"), "--layers", "hidden_0")
    error = run(folder, "ner", *asked).exception
    assert isinstance(error, DataError)
    assert "x.conllu has Entity= but no line '# global.Entity" in str(error)
    (tmp_path / "x.conllu").write_text("# global.Entity = GRP-etype\n" + text)
    found = json.loads(run(folder, "ner", *asked, "--json").stdout)
    assert any("every mention, including pronouns" in note for note in found["notes"])


def test_a_note_is_shown_literally(folder, tmp_path):
    text = (folder / "test.conllu").read_text().replace("\tw0\t", "\t\u200b\t")
    (tmp_path / "x.conllu").write_text(text, "utf-8")
    assert "were replaced by [UNK]" in run(folder, "pos", "--test", str(tmp_path / "x.conllu")).output


def test_the_help_shows_an_example():
    assert "Example: mini-bert probe pos" in CliRunner().invoke(app, ["--help"]).output

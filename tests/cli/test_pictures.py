"""mini-bert plot and report: figures and a page from a run, a model and the results of other commands."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

pytest.importorskip("matplotlib", reason="figures need the extra viz")

from mini_bert.cli.app import app
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.wordpiece.learn import learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer

TEXT = "the cat sat on the mat and the dog lay by the door of the old house .\n\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    text = "".join(TEXT.replace("cat", word) for word in "abcdefghijklmnopqrstuvwxyz")
    (folder / "text.txt").write_text(text)
    tokenizer = WordPieceTokenizer(learn_vocabulary(Counter(text.split()), 60))
    prepare([str(folder / "text.txt")], tokenizer, folder / "corpus", heldout=0.2, workers=1)
    result = CliRunner().invoke(app, [
        "pretrain", "--config", "debug", "--data", str(folder / "corpus"), "--out", str(folder / "run"), "--quiet",
        "--set", "training.steps=8", "--set", "training.eval_every=2", "--set", "training.log_every=2",
        "--set", "training.checkpoint_every=4", "--set", "training.keep_checkpoints=3",
        "--set", "model.vocab_size=60"])
    assert result.exit_code == 0, result.output
    return folder / "run"


def call(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("arguments", [
    ("attention", "The cat sat on the mat."), ("attention", "The cat sat.", "--layer", "1", "--head", "2"),
    ("gradients", "The cat sat on the mat."), ("spectra",), ("spectra", "--layer", "1")])
def test_figures_of_the_shipped_model(tmp_path, arguments):
    call("plot", *arguments, "--out", tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_bytes().startswith(b"<?xml")


def test_the_figure_shows_the_tokens_of_the_text(tmp_path):
    call("plot", "attention", "Zebras sleep.", "--layer", "0", "--out", tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text()
    assert all(f">{token}<" in drawn for token in ("[CLS]", "sleep", "[SEP]"))


@pytest.mark.parametrize("arguments", [("layers",), ("projection",), ("landscape",)])
def test_figures_of_text_files(tmp_path, arguments):
    (tmp_path / "texts.txt").write_text("The cat sat on the mat.\nA dog barked at the old man.\nIt rained.\n")
    call("plot", *arguments, tmp_path / "texts.txt", "--out", tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["training", "weights"])
def test_figures_of_a_run(tmp_path, run, kind):
    result = json.loads(call("plot", kind, run, "--out", tmp_path / "x.png", "--json"))
    assert Path(result["file"]).is_file()


def test_a_moved_corpus_adds_the_losses_of_ngrams_to_the_figure(tmp_path, run):
    from mini_bert.report.figures import training_curves

    shutil.copytree(run, tmp_path / "run")
    config = tmp_path / "run" / "config.yaml"
    settings = yaml.safe_load(config.read_text())
    shutil.copytree(settings["data"]["corpus"], tmp_path / "moved")
    config.write_text(yaml.safe_dump(settings | {"data": settings["data"] | {"corpus": str(tmp_path / "gone")}}))

    def labels(*corpus):
        return {text.get_text() for text in training_curves(tmp_path / "run", *corpus).axes[0].texts}

    assert labels(tmp_path / "moved") == labels() | {"bigram", "trigram"}
    call("plot", "training", tmp_path / "run", "--corpus", tmp_path / "moved", "--out", tmp_path / "x.png")
    refused = CliRunner().invoke(app, ["plot", "training", str(tmp_path / "run"), "--corpus", str(tmp_path / "none"),
                                       "--out", str(tmp_path / "y.png")])
    assert "not a prepared corpus" in str(refused.exception)
    assert not (tmp_path / "y.png").exists()


@pytest.mark.parametrize("kind", ["training", "weights"])
def test_the_directory_of_a_fit_stands_for_its_run(tmp_path, run, kind):
    shutil.copytree(run, tmp_path / "fit" / "run")
    call("plot", kind, tmp_path / "fit", "--out", tmp_path / "x.png")
    assert (tmp_path / "x.png").is_file()


@pytest.mark.parametrize("lost", ["tokens", "learning_rate", "grad_norm", "smoothed_loss", "loss"])
def test_a_log_with_missing_values_is_drawn_with_gaps(tmp_path, run, lost):
    shutil.copytree(run, tmp_path / "run")
    log = tmp_path / "run" / "log.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()]
    for number, record in enumerate(records):
        if number != 1 or lost != "tokens":
            record[lost] = "none" if number % 2 else None
        if number % 3 == 0:
            del record[lost]
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    call("plot", "training", tmp_path / "run", "--out", tmp_path / "x.png")
    call("report", tmp_path / "run")


def test_a_log_without_tokens_is_refused(tmp_path, run):
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "log.jsonl").write_text('{"step": 1, "loss": 3.0}\n')
    result = CliRunner().invoke(app, ["plot", "training", str(tmp_path / "run"), "--out", str(tmp_path / "x.png")])
    assert "no loss to draw" in str(result.exception)


def test_figures_of_labels_and_probes(tmp_path):
    (tmp_path / "labels.tsv").write_text("NOUN\tNOUN\nNOUN\tVERB\nVERB\tVERB\n")
    call("plot", "confusion", tmp_path / "labels.tsv", "--out", tmp_path / "x.svg")
    assert ">50%<" in (tmp_path / "x.svg").read_text()
    row = {"layer": "hidden_0", "probe": "linear", **{name: {"mean": 0.5, "low": 0.4, "high": 0.6, "values": 3}
                                                      for name in ("accuracy", "random", "control")}}
    (tmp_path / "probe.json").write_text(json.dumps({"rows": [row], "baselines": {"majority": {"accuracy": 0.2}}}))
    call("plot", "probe", tmp_path / "probe.json", "--out", tmp_path / "y.svg")
    assert "majority" in (tmp_path / "y.svg").read_text()


def test_a_report_is_one_page_with_the_verdict_the_curves_and_the_settings(run):
    result = json.loads(call("report", run, "--json"))
    html = Path(result["page"]).read_text()
    assert Path(result["page"]) == run / "report.html"
    assert html.count("<svg") >= 4
    assert "Diagnosis" in html
    assert "learning_rate" in html
    assert "http" not in html.replace("http://www.w3.org", "")


@pytest.mark.parametrize(("arguments", "said"), [
    (["plot", "nosuch"], "choose one of attention"),
    (["plot", "attention"], "takes one text"),
    (["plot", "attention", "a", "--layer", "9"], "layers 0 to 2"),
    (["plot", "training", "/no/such/run"], "/no/such/run"),
    (["plot", "spectra", "a text"], "takes no input, but 'a text' is given"),
    (["plot", "attention", "a", "--out", "x.gif"], ".png, .svg, .pdf"),
    (["plot", "projection", "--method", "mds", __file__], "pca, tsne, umap"),
    (["plot", "probe", __file__], "cannot be read as JSON"),
    (["plot", "confusion", __file__], "line 1: expected a true and a predicted label"),
    (["report", "/no/such/run"], "/no/such/run"),
])
def test_invalid_calls_are_refused(arguments, said):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code != 0
    assert said in str(result.exception)

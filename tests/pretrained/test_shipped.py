"""The models that ship: they load by name, fit their cards, and do what the README says."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import mini_bert
from mini_bert import WordPieceTokenizer
from mini_bert.cli.app import app
from mini_bert.errors import CheckpointError
from mini_bert.evaluation.masked_lm import evaluate_corpus
from mini_bert.inference.fill_mask import fill_mask
from mini_bert.pretrained import model_directory, shipped_names
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare

DEV = Path(__file__).parents[3] / "shared" / "data" / "pretrain"
SENTENCES = (model_directory("mini").parent / "sentences.txt").read_text("utf-8").splitlines()


@pytest.fixture(scope="module", params=shipped_names())
def name(request) -> str:
    return request.param


def test_mini_ships_and_is_the_exact_model():
    assert "mini" in shipped_names()
    assert mini_bert.load("mini").config == mini_bert.ModelConfig()


def test_a_shipped_model_is_small_and_whole(name):
    folder = model_directory(name)
    assert {"config.json", "model.safetensors", "vocab.txt", "README.md"} <= {file.name for file in folder.iterdir()}
    assert (folder / "model.safetensors").stat().st_size <= 10_000_000
    assert len(WordPieceTokenizer.load(name)) == mini_bert.load(name).config.vocab_size


@pytest.mark.parametrize(("file", "place"), [("model.safetensors", -5000), ("config.json", 70)])
def test_a_changed_byte_of_a_shipped_model_is_noticed(name, tmp_path, file, place):
    shutil.copytree(model_directory(name), tmp_path / "copy")
    content = bytearray((tmp_path / "copy" / file).read_bytes())
    content[place] ^= 1
    (tmp_path / "copy" / file).write_bytes(content)
    with pytest.raises(CheckpointError):
        mini_bert.load(tmp_path / "copy")


def test_a_directory_of_the_same_name_is_not_the_shipped_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = mini_bert.ModelFactory.create_model("debug")
    model.save(tmp_path / "mini")
    assert mini_bert.load("mini").config.hidden_size == 192
    assert mini_bert.load("./mini").config == model.config


def test_the_card_shows_what_the_model_answers(name):
    card = (model_directory(name) / "README.md").read_text("utf-8")
    model, tokenizer = mini_bert.load(name), WordPieceTokenizer.load(name)
    rows = re.findall(r"^\| ([^|]*\[MASK\][^|]*) \| ([^|]*) \| (yes|no) \|$", card, re.MULTILINE)
    assert [text for text, _, _ in rows] == SENTENCES
    for text, words, _ in rows:
        assert [candidate.token for candidate in fill_mask(model, tokenizer, text)[0]] == words.split(", ")
    assert sum(verdict == "yes" for *_, verdict in rows) >= 20


def test_the_reference_curve_is_one(name):
    curve = json.loads((model_directory(name) / "reference.json").read_text("utf-8"))
    tokens, mean = curve["tokens"], curve["mean"]
    assert len(tokens) == len(mean) == len(curve["low"]) == len(curve["high"])
    assert tokens == sorted(tokens)
    band = list(zip(tokens, curve["low"], mean, curve["high"], strict=True))
    assert all(low <= middle <= high for at, low, middle, high in band if at <= curve["band_until"])
    assert all(low is None and high is None for at, low, _, high in band if at > curve["band_until"])
    assert mean[-1] < mean[0]


def test_fill_mask_needs_no_model_to_be_named():
    done = CliRunner().invoke(app, ["fill-mask", "They met for the first [MASK] in Paris.", "--json"])
    assert done.exit_code == 0
    (mask,) = json.loads(done.stdout)["results"][0]["masks"]
    assert mask[0]["token"] == "time"
    assert sum(word["probability"] for word in mask) <= 1


def test_texts_come_from_standard_input_too():
    done = CliRunner().invoke(app, ["fill-mask", "--json"], input="The [MASK] sat.\nHe [MASK].\n")
    assert [result["text"] for result in json.loads(done.stdout)["results"]] == ["The [MASK] sat.", "He [MASK]."]


@pytest.mark.skipif(not DEV.is_dir(), reason=f"the held-out text is not at {DEV}")
def test_the_loss_is_what_the_card_says(name, tmp_path):
    card = (model_directory(name) / "README.md").read_text("utf-8")
    said = float(re.search(r"held-out loss \| \*\*([\d.]+)\*\*", card)[1])
    model, tokenizer = mini_bert.load(name), WordPieceTokenizer.load(name)
    prepare([str(DEV / "wiki.dev.txt"), str(DEV / "books.dev.txt")], tokenizer, tmp_path / "dev", heldout=0.0,
            workers=1)
    found = evaluate_corpus(model, Corpus(tmp_path / "dev"), split="train")
    assert found.loss == pytest.approx(said, abs=5e-3)
    assert found.loss < found.baselines["bigram"] < found.baselines["unigram"] < found.baselines["uniform"]
    assert np.isfinite(found.perplexity)

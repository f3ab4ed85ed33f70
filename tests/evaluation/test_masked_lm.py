"""Masked prediction: exact values on a model with known behaviour."""

import json
from itertools import pairwise
from math import log

import numpy as np
import pytest
from typer.testing import CliRunner

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.cli.app import app
from mini_bert.evaluation.masked_lm import Frequencies, predictions, report
from mini_bert.objectives.masked import MaskedLM, micro_batches
from mini_bert.text.batches import MLMBatches
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.workers import Workers

WORDS = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluation")
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])
    (folder / "text.txt").write_text("\n\n".join(["a b c d " * 12, "b c d a " * 9, "a a b b " * 7]))
    prepare([str(folder / "text.txt")], tokenizer, folder / "corpus", heldout=0, workers=1)
    model = MiniBERT(ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=16, vocab_size=9,
                                 max_seq_length=16))
    model.save(folder / "model")
    tokenizer.save(folder / "model")
    return folder, model


def test_every_masked_token_has_the_same_weight(made):
    folder, model = made
    batches = MLMBatches(Corpus(folder / "corpus"), max_seq_length=16, batch_size=4)
    parts = [part for step in range(len(batches)) for part in micro_batches(batches[step], 2)]
    found = predictions(model, parts, Workers(1))
    other = MaskedLM(model).evaluate(parts, Workers(2))
    assert found.loss.mean() == pytest.approx(other["masked"], rel=1e-5)
    assert found.right.mean() == other["masked_accuracy"]
    figures = report(found, Frequencies(Corpus(folder / "corpus"), 9), 9)
    assert sum(count for *_, count in figures.by_position) == sum(count for *_, count in figures.by_frequency) == \
        figures.masked == sum(int(part.mask_positions.sum()) for part in parts)
    assert sum(loss * n for _, loss, n in figures.by_position) / figures.masked == pytest.approx(figures.loss)
    assert figures.perplexity == pytest.approx(np.exp(figures.loss))


@pytest.mark.parametrize("own", [0, 1])
def test_baselines_match_the_counts(made, own):
    folder, model = made
    corpus = Corpus(folder / "corpus")
    batches = MLMBatches(corpus, max_seq_length=16, batch_size=4)
    found = predictions(model, [batches[0]], Workers(1))
    frequencies = Frequencies(corpus, 9, leave_out=bool(own))
    tokens = corpus.tokens.tolist()
    single = {token: (max(tokens.count(token) - own, 0) + 1) / (len(tokens) - own + 9) for token in range(9)}
    assert frequencies.unigram_loss(found) == pytest.approx(-np.mean([log(single[t]) for t in found.token.tolist()]))
    pairs = list(pairwise(tokens))
    expected = [-log(0.7 * max(pairs.count((before, token)) - own, 0) / max(tokens.count(before) - own, 1)
                     + 0.3 * single[token])
                for before, token in zip(found.before.tolist(), found.token.tolist(), strict=True)]
    assert frequencies.bigram_loss(found) == pytest.approx(np.mean(expected))


def test_the_command_prints_masked_prediction(made):
    folder, _ = made
    arguments = ["evaluate", "--model", str(folder / "model"), "--data", str(folder / "text.txt"), "--length", "16"]
    result = CliRunner().invoke(app, [*arguments, "--json", "--train", str(folder / "corpus")])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["baselines"]["uniform"] == pytest.approx(log(9))
    assert data["loss"] > 0
    again = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert again["loss"] == data["loss"]
    assert "perplexity" in CliRunner().invoke(app, arguments).stdout

"""Text from a causal model: the kept keys change nothing, and draws follow their settings."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from mini_bert import InputError, MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.cli.app import app
from mini_bert.inference.generate import Sampling, generate, generate_ids
from mini_bert.text.vocabulary import SPECIAL_TOKENS

SIZES = {"num_layers": 2, "num_heads": 2, "hidden_size": 32, "intermediate_size": 64, "vocab_size": 50,
         "block": "pre_ln", "max_seq_length": 24, "init_std": 0.3}
TERMS = ["causal", "causal + rotary", "causal + t5_bias", "causal + relative_keys(reach=3)",
         "causal + alibi + sliding_window(reach=3)", "causal + segments + relative"]


def causal(terms="causal", **more):
    positions = "learned" if terms == "causal" else "none"
    config = ModelConfig(**{**SIZES, **more}, score_terms=terms, position_embeddings=positions)
    return MiniBERT(config, dtype=np.float64)


@pytest.mark.parametrize("terms", TERMS)
def test_kept_keys_give_the_tokens_of_whole_passes(terms, rng):
    model, prompts = causal(terms), rng.integers(5, 50, (3, 6))
    drawn = np.stack(list(generate_ids(model, prompts, 18, Sampling(temperature=0))), axis=1)
    known = prompts
    for _ in range(18):
        best = model.forward(known)[0][:, -1].argmax(axis=-1)
        known = np.concatenate([known, best[:, None]], axis=1)
    assert np.array_equal(drawn, known[:, 6:])


def test_a_text_longer_than_the_window_goes_on(rng):
    assert len(list(generate_ids(causal(), rng.integers(5, 50, (1, 60)), 60))) == 60


def test_the_seed_decides(rng):
    model, prompt = causal(), rng.integers(5, 50, (1, 3))
    first, again, other = (np.array(list(generate_ids(model, prompt, 15, Sampling(seed=seed)))) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_draws_have_the_probabilities_that_they_are_asked_for():
    logits = np.log(np.array([[0.5, 0.3, 0.15, 0.05]]))
    drawn = np.array([Sampling(seed=0).draw(logits, i)[0] for i in range(4000)])
    assert np.allclose(np.bincount(drawn, minlength=4) / 4000, [0.5, 0.3, 0.15, 0.05], atol=0.03)
    for sampling, kept in ((Sampling(top_k=2), {0, 1}), (Sampling(top_p=0.6), {0, 1}), (Sampling(top_p=0.5), {0}),
                           (Sampling(temperature=0), {0}), (Sampling(top_k=1), {0})):
        assert {int(sampling.draw(logits, i)[0]) for i in range(300)} == kept


def test_a_model_that_sees_the_future_is_refused():
    with pytest.raises(InputError, match="cannot generate"):
        next(generate_ids(MiniBERT(ModelConfig(**SIZES)), np.array([[5, 6]]), 3))


@pytest.mark.parametrize("wrong", [{"temperature": -1.0}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": float("nan")}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InputError):
        Sampling(**wrong)


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer([*SPECIAL_TOKENS, *"abcdefg", *(f"##{c}" for c in "abcdefg")])


def test_text_comes_in_parts_without_special_tokens(tokenizer):
    parts = list(generate(causal(vocab_size=len(tokenizer)), tokenizer, "a b", 20, seed=1))
    assert "[" not in "".join(parts)
    assert not "".join(parts).startswith("a b")           # the prompt is not repeated
    assert len(parts) > 1


def test_the_command_continues_a_text(tokenizer, tmp_path):
    model = causal(vocab_size=len(tokenizer))
    model.save(tmp_path)
    tokenizer.save(tmp_path)
    done = CliRunner().invoke(app, ["generate", "a b", "--model", str(tmp_path), "-n", "9", "--samples", "2", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["prompt"] == "a b"
    assert len(found["continuations"]) == 2
    refused = CliRunner().invoke(app, ["generate", "a b", "--model", "mini"])
    assert isinstance(refused.exception, InputError)

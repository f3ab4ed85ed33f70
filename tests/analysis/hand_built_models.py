"""Models and a tokenizer for the tests of this folder: small ones, and one with hand-built attention."""

import numpy as np

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.checks.check_all import models_to_check
from mini_bert.text.vocabulary import SPECIAL_TOKENS

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "a", "mat", ",", ".", "big", "red", "##s"]
VARIANTS = models_to_check()              # together they use every word of every slot
WITH_HEAD = {name: config for name, config in VARIANTS.items() if MiniBERT(config, seed=None).modules.predicts_words}


def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


def build(config: ModelConfig, dtype=np.float64, seed: int = 1) -> MiniBERT:
    """A model whose weights are large enough that everything matters."""
    model = MiniBERT(config, dtype=dtype)
    model.params.flat += (0.1 * np.random.default_rng(seed).standard_normal(model.params.flat.size)).astype(dtype)
    return model


def small(**changes) -> MiniBERT:
    return build(ModelConfig(**{"num_layers": 2, "num_heads": 2, "hidden_size": 16, "intermediate_size": 24,
                                "vocab_size": len(SPECIAL_TOKENS) + len(WORDS), "max_seq_length": 16} | changes))


def pattern_model() -> MiniBERT:
    """Layer 0 has a head for the previous token and one for [SEP]; both heads of layer 1 attend uniformly.

    A position is a unit vector in dimensions 0 to 7, and 1 in dimension 8; [SEP] is 1 in dimension 9. A query
    matches the unit vector of the previous position (head 0), and dimension 9 at any position (head 1).
    """
    model = MiniBERT(ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=8, vocab_size=18,
                                 max_seq_length=8), dtype=np.float64, seed=None)
    p = model.params
    p["position_embeddings"][:, :8] = np.eye(8)
    p["position_embeddings"][:, 8] = 1
    p["token_embeddings"][SPECIAL_TOKENS.index("[SEP]"), 9] = 1
    p["W_Q_0"][np.arange(1, 8), np.arange(7)] = 100          # position t matches t - 1
    p["W_K_0"][np.arange(8), np.arange(8)] = 1
    p["W_Q_0"][8, 8], p["W_K_0"][9, 8] = 100, 1
    for name in p:
        if "gamma" in name:
            p[name][...] = 1
    return model

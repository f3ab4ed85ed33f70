"""A small corpus, a small model, and settings for runs of seconds."""

from pathlib import Path

import numpy as np
import pytest

from mini_bert import ModelConfig
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.training.config import TrainingConfig

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "looked", "at", "its", "master", "who", "ran", "away"]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Corpus:
    rng = np.random.default_rng(0)
    text = "\n\n".join(" ".join(rng.choice(WORDS, 40)) + "." for _ in range(60))
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text.txt").write_text(text)
    tokenizer = WordPieceTokenizer(learn_vocabulary(count_words([text]), 60))
    prepare([str(folder / "text.txt")], tokenizer, folder / "made", heldout=0.1, workers=1)
    return Corpus(folder / "made")


@pytest.fixture(scope="session")
def pair_corpus(tmp_path_factory) -> Corpus:
    """Documents of several sentences."""
    rng = np.random.default_rng(1)
    folder = tmp_path_factory.mktemp("pairs")
    text = "\n\n".join("\n".join(" ".join(rng.choice(WORDS, rng.integers(3, 6))) + "." for _ in range(6))
                       for _ in range(40))
    (folder / "text.txt").write_text(text)
    tokenizer = WordPieceTokenizer(learn_vocabulary(count_words([text]), 60))
    prepare([str(folder / "text.txt")], tokenizer, folder / "made", heldout=0.1, workers=1)
    return Corpus(folder / "made")


@pytest.fixture(scope="session")
def model_config() -> ModelConfig:
    return ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=60,
                       max_seq_length=16, dropout=0.1)


@pytest.fixture
def settings() -> TrainingConfig:
    return TrainingConfig(steps=12, batch_size=8, micro_batch_size=2, learning_rate=1e-2, warmup_steps=2, log_every=3,
                          eval_every=6, eval_sequences=16, checkpoint_every=4, threads=2)


@pytest.fixture
def run(tmp_path) -> Path:
    return tmp_path / "run"

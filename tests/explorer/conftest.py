"""A small model with a tokenizer of a few words, and a run that was trained for seconds."""

from pathlib import Path

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.explorer.session import Session
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.training.config import TrainingConfig
from mini_bert.training.runs.run import start_run

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "a", "mat", ",", ".", "big", "red", "##s"]
CONFIG = ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=24,
                     vocab_size=len(SPECIAL_TOKENS) + len(WORDS), max_seq_length=16)


@pytest.fixture(scope="session")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture
def session(tokenizer) -> Session:
    model = MiniBERT(CONFIG)
    noise = np.random.default_rng(1).standard_normal(model.params.flat.size)
    model.params.flat += (0.1 * noise).astype(np.float32)
    return Session(model, tokenizer, name="small")


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory, tokenizer) -> Path:
    folder = tmp_path_factory.mktemp("explored")
    rng = np.random.default_rng(0)
    text = "\n\n".join(" ".join(rng.choice(WORDS[:8], 30)) + "." for _ in range(40))
    (folder / "text.txt").write_text(text)
    prepare([str(folder / "text.txt")], tokenizer, folder / "corpus", heldout=0.2, workers=1)
    settings = TrainingConfig(steps=12, batch_size=8, learning_rate=1e-2, warmup_steps=2, log_every=2, eval_every=4,
                              eval_sequences=16, checkpoint_every=4, keep_checkpoints=10, threads=1)
    start_run(CONFIG, settings, folder / "corpus", folder / "run").train()
    return folder / "run"

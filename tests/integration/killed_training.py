"""The run that test_kill.py kills; in a file of its own, since each of its processes imports it."""

from pathlib import Path

from mini_bert import ModelConfig
from mini_bert.training.config import TrainingConfig
from mini_bert.training.runs.run import resume_run, start_run

STEPS = 150


def train(run: Path, corpus: Path) -> None:
    """Begin the run, or continue it."""
    if (run / "config.yaml").exists():
        trainer = resume_run(run)
    else:
        config = ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=60,
                             max_seq_length=16, dropout=0.1)
        settings = TrainingConfig(steps=STEPS, batch_size=8, micro_batch_size=4, learning_rate=1e-2, warmup_steps=5,
                                  log_every=5, eval_every=10, eval_sequences=16, checkpoint_every=5, threads=2)
        trainer = start_run(config, settings, corpus, run)
    trainer.train()

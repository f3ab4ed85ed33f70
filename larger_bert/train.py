"""Training a Larger-BERT in a few lines."""

from os import PathLike
from pathlib import Path

from mini_bert import CheckpointError, MiniBERT, ModelFactory
from mini_bert.text.batches import MLMBatches
from mini_bert.text.tokenizer import Tokenizer
from mini_bert.training.config import TrainingConfig, load_run_config
from mini_bert.training.loop import Listener, State
from mini_bert.training.trainer import Trainer

__all__ = ["LargerBERTTrainer"]


class LargerBERTTrainer:
    """Trains a model on batches such as those of MLMDataGenerator.

    For runs of hours, with a corpus, checkpoints and resuming, see `mini-bert pretrain --config larger`.
    """

    def __init__(self, model: MiniBERT, config: TrainingConfig | None = None, *, listener: Listener | None = None):
        self.model, self.listener = model, listener
        self.config = load_run_config("larger")[1] if config is None else config

    def load_tokenizer(self, path: str | PathLike[str] | None = None) -> Tokenizer:
        """The tokenizer at `path`; without one, it is learned from the documentation installed with Python.

        That text is not enough for 50,000 pieces: a warning says how many were learned.
        """
        return ModelFactory.create_tokenizer(self.model.config.vocab_size, path)

    def train(self, data_generator: MLMBatches, num_steps: int = 1000, *,
              checkpoint_dir: str | PathLike[str] | None = None) -> State:
        """Train for `num_steps` batches. With `checkpoint_dir`, log and checkpoints are kept there."""
        values = {**self.config.to_dict(), "steps": num_steps, "batch_size": data_generator.batch_size,
                  "warmup_steps": min(self.config.warmup_steps, num_steps // 10), "budget": ""}
        run = None if checkpoint_dir is None else Path(checkpoint_dir)
        if run is not None and run.exists() and any(run.iterdir()):
            raise CheckpointError(f"{run} is not empty; name another directory for the checkpoints.")
        if run is not None:
            run.mkdir(parents=True, exist_ok=True)
        trainer = Trainer(self.model, data_generator, TrainingConfig.from_dict(values), run=run,
                          tokenizer=data_generator.sequences.corpus.tokenizer, listener=self.listener)
        return trainer.train()

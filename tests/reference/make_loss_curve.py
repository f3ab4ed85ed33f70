"""Write loss_curve.json, the reference of tests/training/test_trainer.py: ten steps from a fixed seed.

    python tests/reference/make_loss_curve.py

`make parity` holds the same steps, and forty more, against PyTorch.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from mini_bert import MiniBERT, ModelConfig  # noqa: E402
from mini_bert.training.config import TrainingConfig  # noqa: E402
from mini_bert.training.trainer import Trainer  # noqa: E402
from tests.training.test_trainer import RandomBatches  # noqa: E402

MODEL = ModelConfig(num_layers=2, num_heads=2, hidden_size=32, intermediate_size=64, vocab_size=200,
                    max_seq_length=16)
TRAINING = TrainingConfig(steps=50, batch_size=8, micro_batch_size=4, learning_rate=3e-3, warmup_steps=5)


def main() -> None:
    steps = Trainer(MiniBERT(MODEL, seed=0), RandomBatches(MODEL.vocab_size), TRAINING).steps()
    losses = [next(steps) for _ in range(10)]
    content = {"model": MODEL.to_dict(), "training": TRAINING.to_dict(), "losses": losses}
    (HERE / "loss_curve.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Send the log of a training to Weights & Biases: python examples/wandb_listener.py TEXT OUT (pip install wandb)."""

import sys

import wandb

import mini_bert


class WeightsAndBiases(mini_bert.Listener):
    def began(self, trainer):             # of each run; the config of a fine-tuning is not the trainer's
        config = getattr(trainer, "config", None)
        self.run = wandb.init(name=getattr(trainer, "name", None), config=config and config.to_dict(), reinit=True)

    def logged(self, record):
        self.run.log({key: value for key, value in record.items() if isinstance(value, int | float)}, record["step"])


if __name__ == "__main__":
    mini_bert.fit(sys.argv[1], sys.argv[2], listener=[WeightsAndBiases(), mini_bert.ProgressBar()])

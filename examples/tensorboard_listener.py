"""Watch a training in TensorBoard: python examples/tensorboard_listener.py TEXT OUT (pip install tensorboardX)."""

import sys

from tensorboardX import SummaryWriter

import mini_bert


class TensorBoard(mini_bert.Listener):
    def __init__(self, folder: str):
        self.writer = SummaryWriter(folder)

    def logged(self, record):             # of a fine-tuning it has the name of the run, such as "seed 0"
        for key, value in record.items():
            if isinstance(value, int | float):
                self.writer.add_scalar(f"{record.get('name', 'training')}/{key}", value, record["step"])


if __name__ == "__main__":
    text, out = sys.argv[1:3]
    mini_bert.fit(text, out, listener=[TensorBoard(f"{out}.tensorboard"), mini_bert.ProgressBar()])

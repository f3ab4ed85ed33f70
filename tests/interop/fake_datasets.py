"""A fake of the library `datasets`."""


class Examples(list):
    """The result of load_dataset: a stream of dicts, with or without declared columns."""

    def __init__(self, examples, features=None):
        super().__init__(examples)
        self.features = features

"""Models by name: a preset to start from, or a directory to load."""

from os import PathLike

import numpy as np
import numpy.typing as npt

from .configs import load_preset
from .core.model import MiniBERT


def load(directory: str | PathLike[str], *, dtype: npt.DTypeLike = np.float32) -> MiniBERT:
    """The model in a directory: one that `save` wrote, or a Hugging Face or sentence-transformers BERT."""
    return MiniBERT.load(directory, dtype=dtype)


class ModelFactory:
    """One place that makes models, by the names of presets and checkpoints."""

    @staticmethod
    def create_model(config_name: str = "default", *, dtype: npt.DTypeLike = np.float32, seed: int = 0) -> MiniBERT:
        """A new model with the shipped preset of this name; `default` is `mini`."""
        return MiniBERT(load_preset(config_name), dtype=dtype, seed=seed)

    @staticmethod
    def load_model(checkpoint_path: str | PathLike[str], *, dtype: npt.DTypeLike = np.float32) -> MiniBERT:
        """A trained model from its checkpoint's directory."""
        return load(checkpoint_path, dtype=dtype)

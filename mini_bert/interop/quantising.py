"""A model with narrow weights in a directory of its own: `mini-bert quantise`, and `mini_bert.quantise`.

The files are ours whatever the model was read from: config.json says `weights: int8`, and model.safetensors has the
matrices as they are kept, with their scales. What is added or multiplied element by element stays float32.
"""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..core.model import MiniBERT
from ..core.params import Parameters
from ..core.precision.narrow import KINDS
from ..core.precision.narrow_params import NarrowParameters, narrow_matrices
from ..core.storage.model_files import model_contents
from ..errors import ConfigError
from ..text.tokenizer import Tokenizer
from .exports import write_new_directory


def narrow_parameters(params: Parameters, word: str) -> NarrowParameters:
    """The same parameters with every matrix in this kind: int8, bf16 or fp16."""
    if word not in KINDS:
        raise ConfigError(f"Weights cannot be kept as {str(word)[:100]!r}; the choices are {', '.join(KINDS)}.")
    params.require_trainable()                            # twice would add both errors
    made = narrow_matrices(params, word)
    for name, matrix in made.items():
        if not matrix.is_finite():
            raise ConfigError(f"{name} has values that are too large for {word}.")
    others = {name: np.ascontiguousarray(params[name], np.float32) for name in params if name not in made}
    return NarrowParameters(params.layout, {**others, **made}, word)


def quantise(model: MiniBERT, tokenizer: Tokenizer, out: str | PathLike[str], *, to: str = "int8") -> dict[str, Any]:
    """Write a model whose matrices are `to` into a new directory, which opens like any model, for use alone.

    What is returned says how many bytes the weights take, how many times fewer that is than as float32, and the matrix
    that lost most: its error, relative to its numbers, both as root mean squares.
    """
    narrow = narrow_parameters(model.params, to)
    errors = {name: _error(model.params[name], narrow[name]) for name, spec in narrow.specs.items()
              if not isinstance(narrow[name], np.ndarray)}
    worst = max(errors, key=errors.__getitem__, default="none")
    write_new_directory(Path(out), {
        **model_contents(model.config, narrow, task=model.task_spec, vocab_digest=tokenizer.vocabulary.digest()),
        **tokenizer.to_files()})
    numbers = sum(narrow[name].size for name in narrow)
    return {"bytes": narrow.nbytes, "times": 4 * numbers / narrow.nbytes, "worst_matrix": worst,
            "worst_error": errors.get(worst, 0.0)}


def _error(exact: Any, narrow: Any) -> float:
    size = float(np.sqrt(np.mean(np.square(exact))))
    return float(np.sqrt(np.mean(np.square(np.asarray(narrow) - exact)))) / size if size else 0.0

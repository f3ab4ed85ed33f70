"""A model for a grown vocabulary: what it has learned stays, new words begin as the mean of their old pieces."""

from dataclasses import replace

import numpy as np

from ..core.model import MiniBERT
from ..errors import ConfigError
from ..text.tokenizer import Tokenizer


def grow_model(model: MiniBERT, old: Tokenizer, new: Tokenizer) -> MiniBERT:
    """The model with a row of embeddings, and a column of the head, for each piece that `new` has beyond `old`."""
    model.params.require_trainable()
    if new.vocabulary.pieces[: len(old)] != old.vocabulary.pieces:
        raise ConfigError("The new vocabulary does not begin with the old one, so the model's words would change.")
    if len(old) > model.config.vocab_size:
        raise ConfigError(f"The tokenizer has {len(old)} pieces; the model knows {model.config.vocab_size}.")
    size = max(len(new), model.config.vocab_size)
    grown = MiniBERT(replace(model.config, vocab_size=size), dtype=model.dtype, seed=None)
    pieces = [old.ids(piece) for piece in new.vocabulary.pieces[len(old) :]]
    for name, value in model.params.items():
        wider, axes = grown.params[name], model.params.specs[name].axes
        if "vocabulary" not in axes:
            wider[...] = value
            continue
        axis = axes.index("vocabulary")
        known, place = np.moveaxis(value, axis, 0), np.moveaxis(wider, axis, 0)     # (V, ...)
        place[: len(known)] = known
        for row, ids in enumerate(pieces, len(old)):
            place[row] = known[ids].mean(axis=0)
    return grown

"""The tokenizer that belongs to a model."""

from ..core.model import MiniBERT
from ..errors import InputError
from ..inference.inputs import require_vocabulary
from ..text.opening import load_tokenizer
from ..text.tokenizer import Tokenizer


def model_tokenizer(model: MiniBERT, tokenizer: Tokenizer | None = None) -> Tokenizer:
    """The given tokenizer, or by default the one that the model was loaded with, after checking that it fits."""
    if tokenizer is None:
        if model.source is None:
            raise InputError("The model was not loaded by mini_bert.load, so its tokenizer is not known; pass one.")
        tokenizer = load_tokenizer(model.source)
    require_vocabulary(model, tokenizer)
    return tokenizer

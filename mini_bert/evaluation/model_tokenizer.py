"""The tokenizer that belongs to a model."""

from ..core.model import MiniBERT
from ..errors import InputError
from ..inference.inputs import require_vocabulary
from ..text.wordpiece.tokenizer import WordPieceTokenizer


def model_tokenizer(model: MiniBERT, tokenizer: WordPieceTokenizer | None = None) -> WordPieceTokenizer:
    """The given tokenizer, or by default the one that the model was loaded with, after checking that it fits."""
    if tokenizer is None:
        if model.source is None:
            raise InputError("The model was not loaded by mini_bert.load, so its tokenizer is not known; pass one.")
        tokenizer = WordPieceTokenizer.load(model.source)
    require_vocabulary(model, tokenizer)
    return tokenizer

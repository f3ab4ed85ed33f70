"""Create a model from a preset, or load one by name or from a directory."""

import warnings
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .configs import load_preset
from .core.model import MiniBERT
from .core.task_model import open_model
from .errors import CheckpointError
from .pretrained import model_directory, shipped_names
from .readers import exists, is_file

if TYPE_CHECKING:
    from .text.tokenizer import Tokenizer


def load(name_or_directory: str | PathLike[str], *, dtype: npt.DTypeLike = np.float32) -> MiniBERT:
    """Load a shipped model by name, or a model from a directory: one that `save` wrote, a run (its best model, or else
    its final one), a run's checkpoint, or one in a layout of Hugging Face or sentence-transformers.

    What has the head of a task, such as BertForSequenceClassification, is a TaskModel: its `forward` gives the head's
    scores, and `labels` their names. The model remembers the directory as `model.source`.
    """
    directory = model_directory(name_or_directory)
    _require_directory(str(name_or_directory), directory)
    model = open_model(directory, dtype=dtype)
    model.source = directory
    return model


def load_with_head(name_or_directory: str | PathLike[str]) -> "tuple[MiniBERT, Tokenizer]":
    """A model with its tokenizer, and with the head of a task where `mini-bert finetune` has put one beside it."""
    from .evaluation.tasks.storage import DESCRIPTION, load_task
    from .inference.inputs import require_vocabulary
    from .text.opening import load_tokenizer

    directory = model_directory(name_or_directory)
    if is_file(directory / DESCRIPTION):
        saved = load_task(directory)
        saved.model.labels = tuple(saved.labels)
        return saved.model, saved.tokenizer
    model, tokenizer = load(name_or_directory), load_tokenizer(name_or_directory)
    require_vocabulary(model, tokenizer)
    return model, tokenizer


def _require_directory(name: str, directory: Path) -> None:
    """Refuse a name that is neither a directory nor a shipped model, and suggest the nearest shipped name."""
    if not exists(directory):
        near = get_close_matches(name[:100], shipped_names(), n=1, cutoff=0.6)
        meant = f"did you mean {near[0]}?" if near else f"the shipped names are {', '.join(shipped_names())}."
        raise CheckpointError(f"There is no directory {name[:200]}, and no model of that name: {meant}")


class ModelFactory:
    """Models by preset or checkpoint, and tokenizers."""

    @staticmethod
    def create_model(config_name: str = "default", *, dtype: npt.DTypeLike = np.float32, seed: int = 0) -> MiniBERT:
        """A new model from a shipped preset; `default`, `base` and `mini_bert_base` are `mini`, `large` is `larger`."""
        return MiniBERT(load_preset(config_name), dtype=dtype, seed=seed)

    @staticmethod
    def create_tokenizer(vocab_size: int = 8192, vocab_path: str | PathLike[str] | None = None, *,
                         lowercase: bool | None = None) -> "Tokenizer":
        """The tokenizer at `vocab_path`, or a WordPiece one learned from the documentation installed with Python.

        `lowercase` is passed to `load_tokenizer`; a learned vocabulary is uncased unless it is False. The documentation
        is enough for about 13,000 pieces; where more are asked for, a warning says how many there are.
        """
        from .text.corpora.pydocs import pydocs
        from .text.opening import load_tokenizer
        from .text.wordpiece.learn import count_words, learn_vocabulary
        from .text.wordpiece.tokenizer import WordPieceTokenizer

        if vocab_path is not None:
            return load_tokenizer(vocab_path, lowercase=lowercase)
        uncased = lowercase is not False
        made = WordPieceTokenizer(learn_vocabulary(count_words(pydocs(), uncased), vocab_size), uncased)
        if len(made) < vocab_size:
            warnings.warn(f"The documentation installed with Python has words for {len(made):,} pieces, fewer than the "
                          f"{vocab_size:,} that were asked for; learn a vocabulary of that size from more text "
                          f"(mini-bert tokenizer train FILE --vocab-size {vocab_size} --out DIR), and name its "
                          "directory.",
                          stacklevel=2)
        return made

    @staticmethod
    def load_model(checkpoint_path: str | PathLike[str], *, dtype: npt.DTypeLike = np.float32) -> MiniBERT:
        """A trained model from the directory of its checkpoint."""
        return load(checkpoint_path, dtype=dtype)

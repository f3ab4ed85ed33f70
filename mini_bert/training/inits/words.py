"""A model whose words begin as those of a trained model: `words(of=mini)`.

Much of what a model learns from its first millions of tokens is which words are alike, and that does not depend on its
layers. With D the matrix of the trained model, one row a word,

    E = (D - mean of the rows) * init_std / (standard deviation of what is left)

so that all other parameters find embeddings of the size for which they were drawn. D is the matrix by which the model
predicts words: its head's own, or its token embeddings if the head is tied to them. Words that it does not know stay as
they were drawn. Measured: docs/results/recipe.md
"""

import numpy as np

from ...core.arrays import Array
from ...core.config import ModelConfig
from ...core.params import Parameters
from ...core.registry import register
from ...errors import ConfigError
from ...factory import load
from ...text.corpora.corpus import Corpus
from ...text.opening import load_tokenizer
from .normal import Init


def _vectors(of: str, width: int) -> Array:
    """The rows of the trained model (V, width)."""
    params = load(of).params
    rows = params["mlm_head_W"].T if "mlm_head_W" in params else params["token_embeddings"]
    if rows.shape[1] != width:
        raise ConfigError(f"training.init: the words of {of} have {rows.shape[1]} features, and those of the new model "
                          f"{width}; choose a model of the same width.")
    return rows


@register("init", "words")
def words(of: str = "mini") -> Init:
    """Begin with the word vectors of the model `of`, a name or a directory."""

    def apply(config: ModelConfig, params: Parameters, corpus: Corpus) -> None:
        table = params["token_embeddings"]
        rows = _vectors(str(of), table.shape[1])
        rows = rows - rows.mean(axis=0)
        rows *= config.init_std / rows.std()
        known = {piece: number for number, piece in enumerate(load_tokenizer(str(of)).vocabulary)}
        pairs = np.array([(number, known[piece]) for number, piece in enumerate(corpus.tokenizer.vocabulary)
                          if piece in known])
        if not len(pairs):
            raise ConfigError(f"training.init: {of} knows none of the words of {corpus.directory}.")
        table[pairs[:, 0]] = rows[pairs[:, 1]]

    return Init(apply)

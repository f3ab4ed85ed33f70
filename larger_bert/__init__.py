"""Larger-BERT: the same model at twice the depth and width, with dropout and a vocabulary of 50,000.

It has 49,137,488 parameters: the two matrices of 50,000 x 384 alone, embeddings and untied head, make
38.4 million. The "about 40 million" that is quoted for a model of these sizes leaves out most of the rest.
"""

import numpy as np
import numpy.typing as npt

from mini_bert import MiniBERT, ModelConfig, load_preset

LARGER_BERT_CONFIG = load_preset("larger")

__all__ = ["LARGER_BERT_CONFIG", "LargerBERT"]


class LargerBERT(MiniBERT):
    """MiniBERT with the larger preset as its default."""

    def __init__(self, config: ModelConfig | None = None, *, dtype: npt.DTypeLike = np.float32,
                 seed: int | None = 0):
        super().__init__(LARGER_BERT_CONFIG if config is None else config, dtype=dtype, seed=seed)

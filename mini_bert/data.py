"""`from mini_bert.data import MLMDataGenerator`: the text package under the name that tutorials use."""

from .text.batches import Batches, MLMBatch
from .text.corpora.corpus import Corpus
from .text.generator import MLMDataGenerator
from .text.masking import Masking, mask_tokens

__all__ = ["Batches", "Corpus", "MLMBatch", "MLMDataGenerator", "Masking", "mask_tokens"]

"""The data classes of `mini_bert.text`, under the name that tutorials use."""

from .text.batches import MLMBatch, MLMBatches
from .text.corpora.corpus import Corpus
from .text.generator import MLMDataGenerator
from .text.masking import Masking, mask_tokens

__all__ = ["Corpus", "MLMBatch", "MLMBatches", "MLMDataGenerator", "Masking", "mask_tokens"]

"""What training minimises, one objective per file: batches in, summed losses and their gradients out. How a step is
taken is in mini_bert/training."""

from . import causal, contrastive, distillation, masked, permuted

__all__ = ["causal", "contrastive", "distillation", "masked", "permuted"]

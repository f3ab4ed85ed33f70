"""What training minimises, one objective per file: batches in, summed losses and their gradients out. How a step is
taken is in mini_bert/training."""

from . import causal, hybrid, masked, next_sentence, permuted, replaced_tokens, sentence_order, token_order

__all__ = ["causal", "hybrid", "masked", "next_sentence", "permuted", "replaced_tokens", "sentence_order",
           "token_order"]

"""Text to token ids to batches: tokenizer, corpora, sequences and masking. Knows nothing of models."""

"""What stands on the encoder: from hidden rows to logits, labels or one vector for a sequence."""

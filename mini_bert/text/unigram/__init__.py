"""Unigram, the model of SentencePiece: segmentation by probability, and the parts of its tokenizer.json."""

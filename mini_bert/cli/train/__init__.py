"""Commands for training: corpora, vocabularies, pre-training, fine-tuning."""

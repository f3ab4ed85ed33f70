"""What stands around the model of a tokenizer.json: added tokens, normalizers, pre-tokenizers, decoders; no model."""

"""Byte-level byte-pair encoding, as in GPT-2, RoBERTa and ModernBERT: learning, encoding and decoding, and the files."""

"""Byte-level BPE, as in GPT-2, RoBERTa and ModernBERT: learning a vocabulary, encoding and decoding, and the files."""

"""Formats and data of other libraries: Hugging Face models, tokenizers and datasets."""

"""Corpora: sources of text, their preparation, and the prepared file that training maps into memory."""

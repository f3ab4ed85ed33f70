"""Corpora: sources of text, their preparation, and the prepared corpus that training maps into memory."""

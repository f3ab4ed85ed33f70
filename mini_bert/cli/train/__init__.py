"""Commands that make corpora and vocabularies, and that train."""

"""Commands for measuring a model."""
